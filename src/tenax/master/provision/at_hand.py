"""The script that makes an agent of a machine at hand, for ``sh`` on that machine.

Rules: it is read to its end before anything of it is done, so that half of it does nothing; it installs the master's
own tenax in a directory of its own, whatever else the machine has; one that holds something else (such as a cluster,
whose join token has the same name), that others may write to, or where there is an agent is left as it is;
the join token is in a file of its owner's alone, which is gone once the agent has joined. What fails is said with its
step, and the script ends with 1.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from tenax.config.provider.agent_install import AgentInstallSettings
from tenax.master.provision.script_parts import STEP_FUNCTIONS, install_lines
from tenax.master.provision.wheel import AgentWheel

#: Seconds that an agent may take to join.
_JOIN_S = 120

_SCRIPT = """#!/bin/sh
# Made by tenax agent bootstrap: makes an agent of the machine that runs it.
{
set -eu
umask 077
# What a step prints is shown where it fails, on standard error.
exec > /dev/null
if [ "$(id -u)" = 0 ]; then usual=/var/lib/tenax-agent
else usual=${XDG_STATE_HOME:-$HOME/.local/state}/tenax/machine; fi
dir=${TENAX_MACHINE_DIR:-$usual}
case $dir in /*) ;; *) dir=${PWD%%/}/$dir ;; esac
tenax_dir=$dir
tenax_url=%(url)s

tenax_say() {
    printf 'tenax: %%s: %%s%%s\\n' "$1" "$2" "${3:+: $3}" >&2
}

%(functions)s

if [ -f "$dir/agent/credential" ]; then
    tenax_say "make an agent" failed "there is one in $dir, which sh $dir/start.sh starts: name another directory by \\
TENAX_MACHINE_DIR, or remove that one"
    exit 1
fi
pid=$(cat "$dir/agent.pid" 2>/dev/null || true)
if [ -n "$pid" ] && ps -o args= -p "$pid" 2>/dev/null | grep -qF -- "$dir/agent"; then
    tenax_say "make an agent" failed "one that tries to join works in $dir: see $dir/agent.log, and kill $pid first"
    exit 1
fi
if [ ! -f "$dir/bootstrapped" ]; then
    for there in "$dir"/* "$dir"/.[!.]*; do
        case ${there##*/} in '*' | '.[!.]*' | agent.yaml) continue ;; esac
        tenax_say "make an agent" failed "$dir holds something else: name another directory by TENAX_MACHINE_DIR"
        exit 1
    done
fi
mkdir -p "$dir"
# They could exchange what is installed, between a step and the next.
if [ -n "$(find -H "$dir" -prune \\( ! -user "$(id -u)" -o -perm -020 -o -perm -002 \\))" ]; then
    tenax_say "make an agent" failed "others than you may write to $dir: name another directory by TENAX_MACHINE_DIR"
    exit 1
fi
: > "$dir/bootstrapped"
mkdir -p "$dir/agent"
# Tasks of other users come through here to what is theirs.
chmod 711 "$dir"
cat > "$dir/join-token" <<'TENAX_END'
%(token)s
TENAX_END
# It is left lying about only while an agent may need it.
trap 'rm -f "$dir/join-token"' EXIT
%(trust)s%(install)s
cat > "$dir/start.sh" <<'TENAX_END_OF_START'
#!/bin/sh
# Starts this machine's agent, again where it breaks, until it is told to leave: kill "$(cat agent.pid)", from here.
set -u
cd "$(dirname "$0")" || exit 1
umask 022
rm -f agent.status
set -- "$PWD/venv/bin/tenax" agent %(flags)s --dir "$PWD/agent" --join-token-file "$PWD/join-token"
# Whoever works here may have written it.
if [ -f agent.yaml ]; then set -- "$@" --config "$PWD/agent.yaml"; fi
# It may join long after the script that brought the token has ended.
(
    while [ -f join-token ] && [ ! -f agent/credential ]; do sleep 1; done
    rm -f join-token
) &
while :; do
    # shellcheck disable=SC2016
    sh -c 'echo "$$" > agent.pid; exec "$@"' agent "$@" >> agent.log 2>&1
    status=$?
    # It was told to leave; or it cannot work with its settings, and trying again will not help.
    case $status in 0 | 2) echo "$status" > agent.status; exit "$status" ;; esac
    sleep 5
done
TENAX_END_OF_START
: > "$dir/agent.log"
rm -f "$dir/agent.status"
tenax_say "start the agent" begun
trap - EXIT
nohup setsid sh "$dir/start.sh" > /dev/null 2>&1 < /dev/null &
waited=0
while [ ! -f "$dir/agent/credential" ]; do
    if [ -f "$dir/agent.status" ]; then
        rm -f "$dir/join-token"
        tenax_say "start the agent" failed "$(tenax_why "$(cat "$dir/agent.status")" 0 "$dir/agent.log")"
        exit 1
    fi
    if [ "$waited" -ge %(join_s)d ]; then
        tenax_say "start the agent" failed "it tries on, and has not joined: see $dir/agent.log"
        exit 1
    fi
    sleep 1
    waited=$((waited + 1))
done
rm -f "$dir/join-token"
tenax_say "start the agent" "done" "its log is $dir/agent.log; after a restart of this machine: sh $dir/start.sh"
exit 0
}
"""

_TRUST = """cat > "$dir/master.crt" <<'TENAX_END'
%s
TENAX_END
"""


@dataclass(frozen=True, slots=True)
class AtHand:
    """What is said of the machine, and of its master; all of it checked."""

    #: Where the machine reaches the master; of several between commas.
    master_url: str
    pool: str
    token: str
    #: Empty: the machine's own name.
    agent_id: str = ""
    #: Certificates (PEM) by which the master is trusted; empty: as the machine does.
    certificate: str = ""


def at_hand_script(machine: AtHand, settings: AgentInstallSettings, wheel: AgentWheel) -> str:
    """The script for one machine."""
    # Names may begin with a dash.
    flags = [f"--master-url={machine.master_url}", f"--pool={machine.pool}"]
    flags += [f"--agent-id={machine.agent_id}"] if machine.agent_id else []
    quoted = " ".join(shlex.quote(flag) for flag in flags)
    if machine.certificate:
        quoted += ' --master-cert "$PWD/master.crt"'
    return _SCRIPT % {
        "url": shlex.quote(machine.master_url),
        "functions": STEP_FUNCTIONS,
        "token": machine.token,
        "trust": _TRUST % machine.certificate if machine.certificate else "",
        "install": install_lines(wheel, settings, certificate=bool(machine.certificate)),
        "flags": quoted,
        "join_s": _JOIN_S,
    }
