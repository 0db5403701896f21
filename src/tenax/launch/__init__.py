"""What an entrypoint starts its ranks with, on one machine or several. Standard library only, Python 3.9.

Started as ``python3 -m tenax.launch.torch_distributed`` in the directory of the user's code, of which nothing may be
imported here: a ``socket.py`` of theirs would be found before Python's.
"""

import os
import sys

if sys.argv[:1] == ["-m"] and sys.path[:1] == [os.getcwd()]:
    del sys.path[0]
