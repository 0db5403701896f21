"""Lists that become data frames. Standard library only, Python 3.9; pandas where a frame is asked for."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Sequence, Tuple, TypeVar, cast

from tenax.errors import InvalidInput

if TYPE_CHECKING:
    import pandas

Row = TypeVar("Row")


class Listing(List[Row]):
    """A list of experiments, trials, checkpoints, runs...: ``to_pandas()`` has a row for each."""

    def columns(self) -> Dict[str, List[object]]:
        """Lists of one length, by name; what is in a map is named with a dot (``hparams.lr``), None stands where a row
        has no such value."""
        return columns_of([dict(flat(_shown(row))) for row in self])

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame of `columns`. Raises InvalidInput where there is no pandas."""
        return frame(self.columns())


def columns_of(rows: Sequence[Mapping[str, object]]) -> Dict[str, List[object]]:
    """Rows as columns, which stand in the order in which they first occur."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: [row.get(name) for row in rows] for name in names}


def frame(columns: Mapping[str, Sequence[object]]) -> pandas.DataFrame:
    """Raises InvalidInput where there is no pandas."""
    try:
        import pandas
    except ImportError as error:
        raise InvalidInput(f"to_pandas() needs pandas here: pip install pandas ({error})") from None
    return pandas.DataFrame(dict(columns))


def _shown(row: object) -> Dict[str, object]:
    """Its fields, but for those that are not printed."""
    return {each.name: getattr(row, each.name) for each in fields(cast(Any, row)) if each.repr}


def flat(values: Mapping[str, object], before: str = "") -> Iterator[Tuple[str, object]]:
    """Names and values; of a map those that are in it, with a dot."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name}.")
        else:
            yield before + name, value
