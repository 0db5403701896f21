"""The types of the asynchronous SDK: ``make docs`` writes `tenax/client/asynchronous/__init__.pyi`.

They are those of the classes whose twins they are, by the rule of `tenax.client.asynchronous.twins`: fields and
properties as they are, methods awaited, iterators as streams, and a twin for each value that has one.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import tenax.client
from tenax.client.connection.reading import LiveAnswer

STUB = Path(tenax.client.__path__[0]) / "asynchronous" / "__init__.pyi"
HEADING = '''"""The types of the asynchronous SDK. Made by `make docs` of the classes whose twins these are."""

from __future__ import annotations

from types import TracebackType
from typing import Type

from tenax.client.asynchronous.stream import AsyncStream as AsyncStream
from tenax.jsonvalue import JsonObject
'''
#: Of a field: as it is in each value.
_RAW = '''    @property
    def raw(self) -> JsonObject:
        """The whole answer."""
'''
_CLOSING = """    async def __aenter__(self) -> AsyncClient: ...
    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None: ...
"""


def live_values() -> list[type[LiveAnswer]]:
    """The classes of the SDK that have a twin, by name."""
    kinds = (getattr(tenax.client, name) for name in tenax.client.__all__ if not name.startswith("Async"))
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, LiveAnswer)]


class _Twins(ast.NodeTransformer):
    """Names of values as those of their twins."""

    names = frozenset(kind.__name__ for kind in live_values())

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id == "Iterator":
            return ast.Name("AsyncStream")
        return ast.Name(f"Async{node.id}") if node.id in self.names else node


def stub() -> str:
    """The text of the file as it is to be."""
    kinds = [tenax.client.Client, *live_values()]
    classes = "".join(_class(kind) for kind in kinds)
    text = f"{HEADING}{_imports(classes, [_module(kind) for kind in kinds])}{classes}"
    ruff = [str(Path(sys.executable).with_name("ruff"))]
    for command in (["check", "--select", "I,F401", "--fix", "--quiet"], ["format"]):
        line = [*ruff, *command, "--stdin-filename", str(STUB), "-"]
        done = subprocess.run(line, input=text, capture_output=True, text=True, check=True)
        text = done.stdout
    return text


def _module(kind: type) -> ModuleType:
    return importlib.import_module(kind.__module__)


def _imports(classes: str, modules: list[ModuleType]) -> str:
    """What the types are made of, imported as where they come from."""
    used = {node.id for node in ast.walk(ast.parse(classes)) if isinstance(node, ast.Name)}
    lines = set()
    for module in modules:
        tree = ast.parse(inspect.getsource(module))
        lines |= {
            f"from {module.__name__} import {node.name}"
            for node in tree.body
            if isinstance(node, ast.ClassDef) and node.name in used
        }
        lines |= {
            f"from {node.module} import {name.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for name in node.names
            if name.name in used and node.module != "__future__"
        }
        lines |= {
            f"import {name.name}"
            for node in tree.body
            if isinstance(node, ast.Import)
            for name in node.names
            if name.name in used
        }
    return "\n".join(sorted(lines)) + "\n"


def _class(kind: type) -> str:
    source = inspect.getsource(_module(kind))
    (tree,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == kind.__name__)
    docstring = getattr(tenax.client, f"Async{kind.__name__}").__doc__
    head = f'class Async{kind.__name__}:\n    """{docstring}"""\n\n'
    own = _CLOSING if kind is tenax.client.Client else _RAW
    return head + own + "".join(_members(tree, source.splitlines()))


def _members(tree: ast.ClassDef, lines: list[str]) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                comment = _comment(lines, node.lineno)
                yield f"{comment}    @property\n    def {name}(self) -> {_type(annotation)}: ...\n"
            case ast.FunctionDef(name=name) if name == "__init__" or not name.startswith("_"):
                yield from _function(node)


def _function(node: ast.FunctionDef) -> Iterator[str]:
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    if "classmethod" in decorators:
        return
    docstring = ast.get_docstring(node, clean=False)
    end = f'\n        """{docstring}"""\n' if docstring else " ...\n"
    returns = "None" if node.returns is None else _type(node.returns)
    awaited = not decorators and node.name != "__init__" and not returns.startswith("AsyncStream[")
    above = "".join(f"    @{decorator}\n" for decorator in decorators)
    arguments = ast.unparse(_Twins().visit(node.args))
    yield f"{above}    {'async ' if awaited else ''}def {node.name}({arguments}) -> {returns}:{end}"


def _type(annotation: ast.expr) -> str:
    return ast.unparse(_Twins().visit(annotation))


def _comment(lines: list[str], number: int) -> str:
    """The lines above a field that say what it is."""
    first = number - 1
    while lines[first - 1].strip().startswith("#:"):
        first -= 1
    return "".join(f"{line}\n" for line in lines[first : number - 1])


if __name__ == "__main__":
    STUB.write_text(stub())
