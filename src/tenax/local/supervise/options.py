"""The settings of a local cluster: the options of ``tenax up``, kept in its directory.

Tasks that run on while the cluster is down know its address, so a later ``tenax up`` without options must come back
where it was: what is given now wins over what was given before, and that over the defaults.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from tenax.host.runtimes import PROCESS
from tenax.jsonvalue import Json
from tenax.local.state_dir import StateDir, read_json, write_json


@dataclass(frozen=True, slots=True)
class Options:
    """Options of ``tenax up``; the values here are the defaults."""

    host: str = "127.0.0.1"
    #: 0: any free one, which is then kept.
    port: int = 8080
    #: ``auto``, or how many slots the agent offers.
    slots: str = "auto"
    #: Whether an agent runs beside the master.
    agent: bool = True
    #: Plain processes, so that a laptop with a container engine and no image trains, too.
    runtime: str = PROCESS.name
    #: Settings file of the master; absolute. Empty: none.
    config: str = ""
    #: Whether the database was one that ``db.url`` names when the cluster was last up.
    own_database: bool = False

    def given(self, **options: Json) -> Options:
        """These options with those that are not None."""
        known = {name: value for name, value in options.items() if value is not None}
        return replace(self, **known)  # type: ignore[arg-type]


def load_options(state: StateDir) -> Options:
    """The options that the directory was last given; the defaults for a new one."""
    stored = read_json(state.options)
    defaults = Options()
    kept = {
        name: stored[name]
        for name, default in asdict(defaults).items()
        if name in stored and type(stored[name]) is type(default)
    }
    return defaults.given(**kept)


def save_options(state: StateDir, options: Options) -> None:
    """Keep them for the next ``tenax up``; they mark the directory as ours, too."""
    write_json(state.options, {"v": 1, **asdict(options)})
