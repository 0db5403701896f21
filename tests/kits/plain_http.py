"""Requests without TLS.

httpx2 reads the system's certificates for each of its clients, 24 ms of a processor, also where none is asked for.
"""

from __future__ import annotations

from functools import partial

import httpx2

request = partial(httpx2.request, verify=False, timeout=120)
get = partial(request, "GET")
post = partial(request, "POST")
