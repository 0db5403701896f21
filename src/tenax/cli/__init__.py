"""The command line: one file per noun, or a folder where it has many verbs; which is where stands in `main`.

Rules: stdout is data, stderr is for messages; no colour unless to a terminal; nothing heavy is imported before
it is used (``tenax --help`` imports click alone); a person never meets a traceback; exit codes are in `exits`.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def start() -> NoReturn:
    """The program ``tenax``. Ctrl-C while it is still being loaded ends it in a word, as it does later."""
    try:
        from tenax.cli.main import main
    except KeyboardInterrupt:
        from tenax.cli.console import exits

        sys.stderr.write("interrupted\n")
        sys.exit(exits.INTERRUPTED)
    main()
