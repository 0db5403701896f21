"""The filter that people type: text in, a tree with positions out. Pure.

    state:error val_loss<0.5 (owner:anna OR owner:me) NOT label:old "two words"

- Conditions stand beside one another: all of them hold. ``AND``, ``OR`` and ``NOT`` are written large; AND binds
  stronger than OR.
- A condition is a column, an operator and a value, or several with commas between them: ``state:error,paused``. A word
  by itself is looked for in names. ``has:COLUMN`` is whatever has a value there.
- What holds spaces, parentheses or operators stands in double quotes, columns and values alike; in them ``\\"`` is a
  quote and ``\\\\`` a backslash.
- What a column means is not known here (`filter_names`).

What is wrong is raised with its place, in characters from the start. A text has at most `MAX_QUERY` characters,
`MAX_TERMS` conditions and `MAX_NESTED` parentheses and NOTs in one another; reading one takes time in proportion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from tenax.errors import InvalidInput

#: Characters of a filter.
MAX_QUERY = 2000
#: Conditions of a filter: each is a part of a statement.
MAX_TERMS = 100
#: Parentheses and NOTs in one another.
MAX_NESTED = 20
#: Values of a condition, with commas between them.
MAX_VALUES = 50

OPERATORS = (":", "=", "!=", "<", "<=", ">", ">=")


class QueryError(InvalidInput):
    """A filter that cannot be read; ``start`` and ``end`` say where, in characters."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.start = start
        self.end = end


@dataclass(frozen=True, slots=True)
class Token:
    """A part of the text: what it says, without quotes, and where it stands."""

    text: str
    start: int
    end: int
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Term:
    """One condition. Without ``column`` it is text by itself, in ``values``."""

    values: tuple[Token, ...]
    column: Token | None = None
    operator: Token | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """All of the parts hold, or with ``any_of`` one of them."""

    parts: tuple[Expression, ...]
    any_of: bool = False


@dataclass(frozen=True, slots=True)
class Negated:
    """What does not hold."""

    part: Expression


Expression: TypeAlias = "Term | Joined | Negated"

_SPACE = re.compile(r"\s*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_WORD = re.compile(r'(?:[^\s"()<>=!:]|!(?!=))+')
_VALUE = re.compile(r'[^\s"(),]+')
_OPERATOR = re.compile(r"!=|<=|>=|[:=<>]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def parse(text: str) -> Joined:
    """The conditions of ``text``; none of it is none of them. Raises QueryError."""
    if len(text) > MAX_QUERY:
        raise QueryError(f"a filter has at most {MAX_QUERY} characters", MAX_QUERY, len(text))
    if "\x00" in text:
        raise QueryError("a filter holds no NUL character", text.index("\x00"), text.index("\x00") + 1)
    return _Reader(text).all()


class _Reader:
    """Reads one filter from its start to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._terms = 0
        self._space()

    def all(self) -> Joined:
        if self._at == len(self._text):
            return Joined(())
        expression = self._any_of(0)
        if self._at < len(self._text):
            raise self._wrong("there is no parenthesis that this one closes", 1)
        return expression if isinstance(expression, Joined) else Joined((expression,))

    def _any_of(self, depth: int) -> Expression:
        parts = [self._all_of(depth)]
        while self._keyword("OR"):
            parts.append(self._all_of(depth))
        return parts[0] if len(parts) == 1 else Joined(tuple(parts), any_of=True)

    def _all_of(self, depth: int) -> Expression:
        parts = [self._not(depth)]
        while not self._ends():
            self._keyword("AND")
            parts.append(self._not(depth))
        return parts[0] if len(parts) == 1 else Joined(tuple(parts))

    def _not(self, depth: int) -> Expression:
        if depth > MAX_NESTED:
            raise self._wrong(f"parentheses and NOT stand at most {MAX_NESTED} deep in one another", 1)
        if self._keyword("NOT"):
            return Negated(self._not(depth + 1))
        if self._peek() != "(":
            return self._term()
        start = self._at
        self._at += 1
        self._space()
        part = self._any_of(depth + 1)
        if self._peek() != ")":
            raise QueryError(
                "this parenthesis is not closed: write ) after the last of its conditions", start, start + 1
            )
        self._at += 1
        self._space()
        return part

    def _term(self) -> Term:
        self._terms += 1
        if self._terms > MAX_TERMS:
            raise QueryError(f"a filter has at most {MAX_TERMS} conditions", self._at, len(self._text))
        column = self._token(_WORD)
        if column is None:
            raise self._missing()
        operator = self._match(_OPERATOR)
        if operator is None:
            return Term((column,))
        values = [self._value(operator)]
        while self._peek() == ",":
            self._at += 1
            values.append(self._value(operator))
            if len(values) > MAX_VALUES:
                raise QueryError(f"a condition has at most {MAX_VALUES} values", values[0].start, values[-1].end)
        self._space()
        return Term(tuple(values), column, operator)

    def _value(self, operator: Token) -> Token:
        self._space()
        value = self._token(_VALUE, spaces=False)
        if value is None:
            raise QueryError(f"a value is missing after {operator.text}", operator.start, max(operator.end, self._at))
        return value

    def _token(self, pattern: re.Pattern[str], *, spaces: bool = True) -> Token | None:
        """A word, or what stands in quotes; None: there is neither."""
        start = self._at
        if self._peek() != '"':
            return self._match(pattern, spaces=spaces)
        quoted = _QUOTED.match(self._text, start)
        if quoted is None:
            raise QueryError('this quote is not closed: write " after the last word', start, len(self._text))
        self._at = quoted.end()
        if spaces:
            self._space()
        return Token(_ESCAPED.sub(r"\1", quoted[1]), start, quoted.end(), quoted=True)

    def _match(self, pattern: re.Pattern[str], *, spaces: bool = True) -> Token | None:
        match = pattern.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        if spaces:
            self._space()
        return Token(match[0], match.start(), match.end())

    def _keyword(self, word: str) -> bool:
        """Whether it comes next; then it is read."""
        match = _WORD.match(self._text, self._at)
        if match is None or match[0] != word or _OPERATOR.match(self._text, self._after(match.end())):
            return False
        self._at = self._after(match.end())
        return True

    def _ends(self) -> bool:
        if self._peek() in ("", ")"):
            return True
        match = _WORD.match(self._text, self._at)
        return match is not None and match[0] == "OR" and not _OPERATOR.match(self._text, self._after(match.end()))

    def _missing(self) -> QueryError:
        if self._at == len(self._text):
            last = len(self._text.rstrip())
            return QueryError("a condition is missing at the end", max(0, last - 1), last)
        operator = _OPERATOR.match(self._text, self._at)
        if operator is not None:
            return self._wrong(f"a column is missing before {operator[0]}", len(operator[0]))
        return self._wrong("a condition is missing here, such as state:error or val_loss<0.5", 1)

    def _wrong(self, message: str, length: int) -> QueryError:
        return QueryError(message, self._at, self._at + length)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _space(self) -> None:
        self._at = self._after(self._at)

    def _after(self, place: int) -> int:
        match = _SPACE.match(self._text, place)
        return place if match is None else match.end()


def quoted(text: str) -> str:
    """``text`` as it stands in a filter: in quotes where it would be read otherwise."""
    if _WORD.fullmatch(text) and "," not in text and text not in ("AND", "OR", "NOT"):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


#: Characters of a condition that is completed.
_MAX_OPEN = 200
_LAST_VALUE = re.compile(r'((?:[^\s"()<>=!:]|!(?!=))+)\s*(?:!=|<=|>=|[:=<>])\s*(?:[^\s"(),]*,)*([^\s"(),]*)$')
_LAST_WORD = re.compile(r'((?:[^\s"()<>=!:]|!(?!=))*)$')


def open_token(before: str) -> tuple[str | None, Token] | None:
    """What is being typed at the end of a text: the column whose value it is, or None, and as far as it is there.

    None where nothing can be said: inside of quotes, or of a text that is too long.
    """
    if len(before) > MAX_QUERY or _ESCAPED.sub("", before).count('"') % 2:
        return None
    start = max(0, len(before) - _MAX_OPEN)
    tail = before[start:]
    value = _LAST_VALUE.search(tail)
    if value is not None:
        return value[1], Token(value[2], start + value.start(2), len(before))
    word = _LAST_WORD.search(tail)
    text = word[1] if word is not None else ""
    return None, Token(text, len(before) - len(text), len(before))
