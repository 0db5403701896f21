"""What providers say, as everyone is shown it; and when their libraries are loaded."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

pytest.importorskip("botocore")
from botocore.exceptions import ClientError

from tenax.errors import TenaxError
from tenax.master.provision.aws import Aws
from tenax.master.provision.port import MachineOrder, OrderRefused, ProviderAway, ProviderPlace, shown
from tests.kits.rented import provider_settings

ORDER = MachineOrder("m-1", "default", provider_settings(), "#!/bin/sh\n# tnxm_secret\n")


def answered(monkeypatch: pytest.MonkeyPatch, error: Exception) -> TenaxError:
    """What becomes of an error of the provider's client."""

    class Client:
        def run_instances(self, **parameters: object) -> Mapping[str, object]:
            raise error

    aws = Aws(ProviderPlace("aws", "here"), "c")
    monkeypatch.setattr(aws, "_ec2", Client)
    with pytest.raises((OrderRefused, ProviderAway)) as raised:
        asyncio.run(aws.launch(ORDER))
    assert isinstance(raised.value, TenaxError)
    return raised.value


def refusal(code: str, message: str, status: int = 400) -> ClientError:
    """As boto3 raises it."""
    return ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}, "RunInstances"
    )


def test_what_a_provider_says_shows_nothing_of_what_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reasons are for all users, and the user data has the join token."""
    encoded = base64.b64encode(ORDER.user_data.encode()).decode()
    for error in (
        refusal("InvalidParameterValue", f"Value ({encoded}) for parameter UserData is invalid"),
        refusal("InternalError", f"cannot handle {encoded}", 500),
        ValueError(f"Invalid value {ORDER.user_data}"),
    ):
        said = str(answered(monkeypatch, error))
        assert "..." in said
        assert encoded not in said
        assert "tnxm_" not in said


def test_an_encoded_message_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes thousands of characters, and rights of the account to read."""
    denied = "You are not authorized to perform this operation. Encoded authorization failure message: "
    said = str(answered(monkeypatch, refusal("UnauthorizedOperation", denied + "x" * 2000)))
    assert said.endswith("(UnauthorizedOperation: You are not authorized to perform this operation.)")


def test_what_is_said_is_one_line_with_an_end() -> None:
    """It stands in tables."""
    assert shown("one\n  two") == "one two"
    assert len(shown("x" * 5000)) == 403


@pytest.mark.parametrize("module", ["tenax.master.process", "tenax.cli.agents.machine", "tenax.master.loops.scaling"])
def test_a_providers_library_is_loaded_only_when_it_is_used(module: str) -> None:
    """It takes half a second and thirty megabytes."""
    code = f"import sys, {module}; sys.exit('boto3' in sys.modules or 'botocore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=False).returncode == 0
