"""What a rented machine runs when it is up: one POSIX script that makes an agent of it, in steps.

Rules: its first act, before any network, is to set the machine's own end, at the end of the time in which its agent is
to join; that the agent has joined takes it back, and from then on the agent ends a machine that no master is heard on.
Beside it a watchdog stays, which needs neither the agent nor the rest of the script nor room on a disk: it powers the
machine off once the lease (`tenax.agent.orphaned`) was not renewed in time, by a clock that nobody sets. Before an
agent has renewed the lease once it does nothing, as one of an older release never does.
The join token stands in it, in a file that root alone can read and on no command line, and lets in nothing but this
machine. An image without tenax gets the master's own. Each step is said on standard error, which a machine writes to
its console, and to the master, with why it failed; what an operator's script does in steps has a time limit each. The
same values give the same script.
"""

from __future__ import annotations

import math
import shlex

from tenax.config.agent import NEVER_RENEWED, NO_SLOTS
from tenax.config.provider.gcp import AnyProviderSettings
from tenax.master.provision.script_parts import STEP_FUNCTIONS, install_lines
from tenax.master.provision.wheel import AgentWheel
from tenax.scheduler.devices import DeviceKind

#: Of the user data of AWS.
MAX_BYTES = 16_384
#: Seconds between two looks at the lease, at most.
_LOOK_S = 30

#: The end that is set last is for a machine that has joined: it is not to go on without an agent. Of the watchdog: dash
#: ends where it cannot fork, but not within ``command eval``; whoever reads what it says may be gone, or hang.
_SCRIPT = """#!/bin/sh
# Made by the master of Tenax: makes an agent of this machine.
set -eu
umask 077
dir=${TENAX_MACHINE_DIR:-/var/lib/tenax}
mkdir -p "$dir/agent"
# Before anything else: this machine ends itself unless its agent joins.
shutdown -P +%(minutes)d >/dev/null 2>&1 || echo "tenax: cannot set the end of this machine" >&2
# Tasks of other users come through here to what is theirs.
chmod 711 "$dir"
cat > "$dir/join-token" <<'TENAX_END'
%(token)s
TENAX_END
cat > "$dir/steps.sh" <<'TENAX_END_OF_STEPS'
# tenax_step NAME SECONDS COMMAND...: do it within that time, and say how it went. NAME goes on from "could not".
tenax_dir=${TENAX_MACHINE_DIR:-/var/lib/tenax}
tenax_url=%(url)s

tenax_say() {
    printf 'tenax: %%s: %%s%%s\\n' "$1" "$2" "${3:+: $3}" >&2
    { cat "$tenax_dir/join-token"; printf '%%s\\n' %(machine)s "$1" "$2" "${3:-}"; } |
        tenax_send >/dev/null 2>&1 || true
}

tenax_send() {
    if command -v curl >/dev/null 2>&1; then
        curl -fsS -m 20 --retry 3 --retry-max-time 60 -H 'Content-Type: text/plain' --data-binary @- \\
            "$tenax_url/agents/machine-step"
    elif command -v python3 >/dev/null 2>&1; then
        python3 -c 'import sys, urllib.request as r; r.urlopen(sys.argv[1], sys.stdin.buffer.read(), 20)' \\
            "$tenax_url/agents/machine-step"
    fi
}

%(functions)s
TENAX_END_OF_STEPS
cat > "$dir/startup.sh" <<'TENAX_END_OF_STARTUP'
%(startup)s
TENAX_END_OF_STARTUP
# shellcheck source=/dev/null
. "$dir/steps.sh"
# shellcheck disable=SC2016
tenax_step "run startup_script" %(seconds)d \\
    sh -euc '. "$1"; . "$2"' startup "$dir/steps.sh" "$dir/startup.sh" > "$dir/startup.log"
%(gpus)s# shellcheck disable=SC2154
if ! command -v tenax >/dev/null 2>&1; then
%(install)s
fi
tenax_say "start the agent" begun
lease=$dir/lease
[ -s "$lease" ] || echo %(unclaimed)s > "$lease"
(
    set +e
    trap '' HUP INT PIPE
    try() { command eval "$1"; }
    echo -1000 > /proc/self/oom_score_adj
    while [ ! -f "$dir/agent/credential" ]; do try 'sleep 1'; done
    try 'shutdown -c'
    seen='' since=0 begun=''
    while :; do
        now=0
        read -r now _ < /proc/uptime
        now=${now%%.*} line=gone
        read -r line < "$lease"
        begun=${begun:-$now} over=''
        if [ "$line" != "$seen" ]; then seen=$line since=$now; fi
        if [ "$seen" != %(unclaimed)s ] && [ $((now - since)) -ge %(orphan)d ]; then
            over="the lease of this machine was not renewed for %(orphan)d s"
        fi
%(max_run)s        if [ "$over" ]; then
            try "echo 'tenax: $over: power off' >&3 &"
            try 'shutdown -P now'
        fi
        try 'sleep %(look)d'
    done
) 3>&2 >/dev/null 2>&1 &
export TENAX_AGENT_CLOUD=%(cloud)s TENAX_AGENT_LEASE_FILE="$lease"
set -- --master-url "$tenax_url" --agent-id %(machine)s --pool %(pool)s --slots %(slots)d \\
    --slot-type %(kind)s --dir "$dir/agent" --join-token-file "$dir/join-token"%(hide)s
# What startup_script writes there.
if [ -f "$dir/agent.yaml" ]; then set -- --config "$dir/agent.yaml" "$@"; fi
export TENAX_AGENT_ORPHAN_AFTER_S=%(orphan)d TENAX_AGENT_ORPHAN_BUSY_AFTER_S=%(busy)d
: > "$dir/agent.log"
umask 022
while :; do
    { status=0; tenax agent "$@" || status=$?; echo "$status" > "$dir/agent.status"; } 2>&1 | tee "$dir/agent.log"
    status=$(cat "$dir/agent.status")
    # It was told to leave; or it cannot work with its settings, and trying again will not help.
    case $status in 0) exit 0 ;; 2) break ;; esac
    sleep 5
done
tenax_say "start the agent" failed "$(tenax_why "$status" 0 "$dir/agent.log")"
shutdown -P +%(orphan_minutes)d >/dev/null 2>&1 || true
exit 1
"""

#: Of a provider that sets no end to a machine's life: from when its agent has joined.
_MAX_RUN = """        [ $((now - begun)) -lt %d ] || over='the time of this machine is over (max_run)'
"""

#: Of a machine whose slots are NVIDIA's: a driver that nothing has loaded yet is loaded.
_GPUS = """tenax_step "use the GPUs" %d sh -uc '
if command -v nvidia-smi >/dev/null; then
    nvidia-smi -L || { modprobe nvidia && nvidia-smi -L; }
else
    modprobe nvidia
fi || { echo "no driver works with the GPUs: take an image that has one, such as %s"; exit 1; }'
"""
_LOOK_FOR_GPUS_S = 300
#: With a Python that is new enough.
_IMAGES = {
    "aws": "a Deep Learning Base GPU AMI with Ubuntu 24.04",
    "gcp": "ubuntu-accelerator-2404-amd64-with-nvidia-570 of ubuntu-os-accelerator-images",
}

_NO_WHEEL = """tenax_say "find tenax" failed \\
    "neither this image nor the master has one to install: install it in the image, or by startup_script"
exit 1"""


def bootstrap_script(
    machine_id: str, pool: str, token: str, settings: AnyProviderSettings, wheel: AgentWheel | None
) -> str:
    """The user data of one machine. ``wheel``: what is installed where its image has no tenax; None: nothing can be."""
    orphan_s = math.ceil(settings.orphan_after)
    # A machine whose driver does not work is not to pass for one of the CPU.
    kind = DeviceKind.CPU.value if settings.cpu_slots_allowed else DeviceKind.CUDA.value
    of_gpus = kind == DeviceKind.CUDA.value and settings.instance_slots > 0
    return _SCRIPT % {
        "gpus": _GPUS % (_LOOK_FOR_GPUS_S, _IMAGES[settings.type]) if of_gpus else "",
        "minutes": max(1, math.ceil(settings.max_agent_starting_period / 60)),
        "seconds": max(1, math.ceil(settings.max_agent_starting_period)),
        "unclaimed": NEVER_RENEWED,
        "max_run": "" if settings.max_run is None else _MAX_RUN % math.ceil(settings.max_run),
        "look": max(1, int(min(_LOOK_S, orphan_s / 10, (settings.max_run or math.inf) / 10))),
        "orphan": orphan_s,
        "orphan_minutes": math.ceil(orphan_s / 60),
        "busy": math.ceil(settings.orphan_busy_after),
        "token": token,
        "functions": STEP_FUNCTIONS,
        "install": _NO_WHEEL if wheel is None else install_lines(wheel, settings.agent_install, machine_id),
        "startup": settings.startup_script,
        "url": shlex.quote(settings.master_url),
        "machine": machine_id,
        "pool": shlex.quote(pool),
        "slots": settings.instance_slots,
        # Not as an option: an agent that is older goes without it.
        "cloud": settings.type,
        # As an option: an agent that is older, and would start tasks all the same, refuses it.
        "hide": "" if settings.tasks_see_metadata else " --hide-metadata",
        "kind": kind if settings.instance_slots else NO_SLOTS,
    }
