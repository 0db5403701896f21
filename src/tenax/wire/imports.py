"""What an agent and the interpreters that load imports for trials have agreed on. Standard library only, Python 3.9.

A trial notes what its script imports, a line per module in the order of the imports: its name, a tab, the file it came
from. The agent hands the lines to an interpreter (`tenax.exec.zygote`).
"""

from __future__ import annotations

#: Ends the notes when the script has ended, or when what follows depends on something else.
COMPLETE = "."
#: A variable, and a word of the command line, that make room for those of scripts.
ROOM = "TENAX_ROOM"
ROOM_BYTES = 100_000
ROOM_OF_WORDS = 8_000
