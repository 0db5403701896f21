"""What the scripts that make agents of machines have in common: steps that are said, and how tenax is installed.

Rules: what is fetched from the master is installed only if its SHA-256 is that which stands in the script; the join
token is read from its file, and stands on no command line. Python takes no module from where the script is run (`-I`),
which may be a directory that everyone may write to. All is POSIX shell, and Python of any 3.
"""

from __future__ import annotations

import shlex

from tenax.config.provider.agent_install import AgentInstallSettings
from tenax.master.provision.wheel import AgentWheel

#: Functions; they need ``tenax_dir`` and ``tenax_say``. Why a command failed follows from its status, its time limit
#: and its output. (Comments stand here where they can: user data has little room.)
STEP_FUNCTIONS = """tenax_why() {
    case $1 in
        124) echo "it took longer than $2 s"; return ;;
        137) echo "it was killed: for want of memory, or as it took longer than $2 s"; return ;;
    esac
    for place in / "${TMPDIR:-/tmp}" "$tenax_dir"; do
        room=$(df -Pk "$place" 2>/dev/null | awk 'NR == 2 { print $4 }')
        if [ "${room:-9999}" -lt 1024 ]; then echo "no room on $place"; return; fi
    done
    last=$(grep -v '^[[:space:]]*$' "$3" | tail -n 1 | cut -c 1-400)
    echo "${last:-it ended with $1}"
}

tenax_step() {
    tenax_name=$1 tenax_limit=$2
    shift 2
    tenax_say "$tenax_name" begun
    tenax_log=$(mktemp "$tenax_dir/step.XXXXXX")
    tenax_status=0
    timeout -k 10 "$tenax_limit" "$@" > "$tenax_log" 2>&1 < /dev/null || tenax_status=$?
    cat "$tenax_log"
    if [ "$tenax_status" -ne 0 ]; then
        tail -n 20 "$tenax_log" >&2
        tenax_say "$tenax_name" failed "$(tenax_why "$tenax_status" "$tenax_limit" "$tenax_log")"
        exit 1
    fi
    rm -f "$tenax_log"
    tenax_say "$tenax_name" "done"
}"""

#: A refusal of the token ends the search for the wheel. Any other answer may be that of one master of several: of an
#: older version, which has no such route, or of what stands before it. The directory of packages of that Python comes
#: behind the environment's own: what the machine has need not be fetched again, and tasks, which run it as other users,
#: too, find it. A tenax that it has is left alone, and not taken for ours.
_INSTALL = """cat > "$dir/fetch.py" <<'TENAX_END_OF_FETCH'
import hashlib, sys, time, urllib.request as r
if sys.version_info < (3, 11):
    sys.exit("agents need Python 3.11, and this is %%d.%%d" %% sys.version_info[:2])
token, machine, urls, digest, target = sys.argv[1:]
body = "\\n".join([open(token).read().strip(), machine, digest]).encode()
for pause in [0, 1, 2, 4, 8]%(more)s:
    time.sleep(pause)
    for url in urls.split(","):
        try:
            wheel = r.urlopen(url + "/agents/wheel", body, 60).read(1 << 28)
        except Exception as e:
            why = str(e)
            try:
                why = e.read(999).decode(errors="replace") or why
            except Exception:
                pass
            why = why.partition('"message":"')[2].rpartition('"')[0] or why
            if getattr(e, "code", 0) == 403:
                sys.exit(why)
            continue
        if hashlib.sha256(wheel).hexdigest() != digest:
            sys.exit("the wheel is not the one that this script is for: its SHA-256 differs")
        open(target, "wb").write(wheel)
        sys.exit()
sys.exit(why)
TENAX_END_OF_FETCH
python=%(python)s
wheel=$dir/%(wheel)s
umask 022
tenax_step "fetch tenax" 600 %(trust)s"$python" -I "$dir/fetch.py" "$dir/join-token" %(machine)s "$tenax_url" \\
    %(sha256)s "$wheel"
tenax_step "make an environment" 600 "$python" -I -m venv --clear "$dir/venv"
for place in "$dir"/venv/lib/python*/site-packages; do
    "$python" -I -c 'import site; print("\\n".join(site.getsitepackages()))' > "$place/machine.pth"
done
set -- "$dir/venv/bin/python" -I -m pip install -q --no-input --disable-pip-version-check
tenax_step "install tenax" 600 "$@" --no-deps --ignore-installed "$wheel"
tenax_step "install what tenax needs" 1800 "$@" %(options)s"${wheel}[server]"
PATH=$dir/venv/bin:$PATH
umask 077"""


def install_lines(
    wheel: AgentWheel, settings: AgentInstallSettings, machine_id: str = "", *, certificate: bool = False
) -> str:
    """Lines that install tenax below ``$dir``, where the file ``join-token`` is, from ``$tenax_url``.

    ``machine_id``: of a rented machine; ``certificate``: the master is trusted by the file ``master.crt`` there.
    """
    return _INSTALL % {
        "python": shlex.quote(settings.python),
        "machine": shlex.quote(machine_id),
        # A machine may be one that this master's database learns of by the next look at its provider.
        "more": " + 30 * [15]" if machine_id else "",
        "trust": 'env SSL_CERT_FILE="$dir/master.crt" ' if certificate else "",
        "sha256": wheel.sha256,
        "wheel": wheel.name,
        "options": "".join(f"{shlex.quote(option)} " for option in settings.pip_options),
    }
