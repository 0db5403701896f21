"""What users of Determined import from ``determined.common.api``: `errors`."""

from __future__ import annotations

from tenax.experimental.common.api import errors as errors
