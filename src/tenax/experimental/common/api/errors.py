"""Errors of the SDK under the names that users of Determined catch them by."""

from __future__ import annotations

from tenax.client import BrokenStream as BrokenStream
from tenax.client import Unreachable
from tenax.errors import Forbidden, InvalidInput, NotAuthenticated, NotFound, NotNow, TenaxError

APIException = TenaxError
BadRequestException = InvalidInput
BadResponseException = BrokenStream
CheckpointStateException = NotNow
ForbiddenException = Forbidden
InvalidCredentialsException = NotAuthenticated
MasterNotFoundException = Unreachable
NotFoundException = NotFound
UnauthenticatedException = NotAuthenticated
