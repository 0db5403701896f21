"""The page of state machines."""

from __future__ import annotations

import re

from tests.docs.state_machines import PAGE, diagram, machines, page


def test_the_page_is_what_the_machines_are() -> None:
    """Made by ``make docs``."""
    assert PAGE.read_text() == page()


def test_a_diagram_is_one_that_mermaid_draws() -> None:
    """Each line is a state with a name or an arrow; in a label a colon or a semicolon would end it."""
    line = re.compile(r'    (state "[^"]+" as \w+|(\w+|\[\*\]) --> (\w+|\[\*\])(: [^:;]+)?)')
    for machine in machines():
        fence, kind, *lines, end = diagram(machine).splitlines()
        assert (fence, kind, end) == ("```mermaid", "stateDiagram-v2", "```")
        assert all(line.fullmatch(each) for each in lines), machine.title
        assert any(each.startswith("    [*] --> ") for each in lines), machine.title
