"""What a rented machine runs when it is up: one POSIX script that makes an agent of it.

Rules: its first act is to set the machine's own end, at the end of the time in which its agent is to join; that the
agent has joined takes it back. The join token stands in it, in a file that root alone can read, and lets in nothing but
this machine. What fails is said on standard error, which a machine writes to its console. The same values give the same
script.
"""

from __future__ import annotations

import math
import shlex

from tenax.config.agent import NO_SLOTS
from tenax.config.provider import ProviderSettings
from tenax.scheduler.devices import DeviceKind

#: Of the user data of AWS.
MAX_BYTES = 16_384

_SCRIPT = """#!/bin/sh
# Made by the master of Tenax: makes an agent of this machine.
set -eu
umask 077
dir=${TENAX_MACHINE_DIR:-/var/lib/tenax}
mkdir -p "$dir/agent"
# Before anything else: this machine ends itself unless its agent joins.
shutdown -P +%(minutes)d >/dev/null 2>&1 || echo "tenax: cannot set the end of this machine" >&2
cat > "$dir/join-token" <<'TENAX_END'
%(token)s
TENAX_END
cat > "$dir/startup.sh" <<'TENAX_END_OF_STARTUP'
%(startup)s
TENAX_END_OF_STARTUP
if ! sh -eu "$dir/startup.sh" > "$dir/startup.log" 2>&1; then
    echo "tenax: startup_script failed; its last lines:" >&2
    tail -n 20 "$dir/startup.log" >&2
    exit 1
fi
if ! command -v tenax >/dev/null 2>&1; then
    echo "tenax: this image has no tenax: install it in the image, or by startup_script" >&2
    exit 1
fi
(
    while [ ! -f "$dir/agent/credential" ]; do sleep 1; done
    shutdown -c >/dev/null 2>&1 || true
) &
exec tenax agent --master-url %(url)s --agent-id %(machine)s --pool %(pool)s --slots %(slots)d \\
    --slot-type %(kind)s --dir "$dir/agent" --join-token-file "$dir/join-token"
"""


def bootstrap_script(machine_id: str, pool: str, token: str, settings: ProviderSettings) -> str:
    """The user data of one machine."""
    # A machine whose driver does not work is not to pass for one of the CPU.
    kind = DeviceKind.CPU.value if settings.cpu_slots_allowed else DeviceKind.CUDA.value
    return _SCRIPT % {
        "minutes": max(1, math.ceil(settings.max_agent_starting_period / 60)),
        "token": token,
        "startup": settings.startup_script,
        "url": shlex.quote(settings.master_url),
        "machine": machine_id,
        "pool": shlex.quote(pool),
        "slots": settings.instance_slots,
        "kind": kind if settings.instance_slots else NO_SLOTS,
    }
