"""The script that makes an agent of a rented machine, run as the machine would."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tenax.agent.__main__ import _arguments
from tenax.config.provider import MAX_STARTUP_SCRIPT_BYTES
from tenax.config.provider.agent_install import AgentInstallSettings
from tenax.master.provision.at_hand import AtHand, at_hand_script
from tenax.master.provision.aws import run_parameters
from tenax.master.provision.bootstrap import MAX_BYTES, bootstrap_script
from tenax.master.provision.port import MachineOrder
from tenax.master.provision.wheel import AgentWheel, own_wheel
from tests.kits.bootstrapped import ended, prepared, put, run
from tests.kits.machine import wait_for
from tests.kits.rented import provider_settings

#: Hears a master once, and never again.
_HEARD_ONCE = '#!/bin/sh\necho "1-1 boot 0" > "$TENAX_AGENT_LEASE_FILE"\n'


@pytest.mark.parametrize(
    "end",
    ["kill -STOP $$", "kill -KILL $PPID $$", 'rm "$TENAX_AGENT_LEASE_FILE"; exit 1', "exit 0"],
    ids=lambda end: end[:10],
)
def test_a_machine_powers_itself_off_once_its_lease_is_over(tmp_path: Path, end: str) -> None:
    """Whatever has become of its agent and its script."""
    told = tmp_path / "state" / "notes"

    def is_off() -> bool:
        said = (tmp_path / "err").read_text()
        return told.exists() and "shutdown -P now\n" in told.read_text() and "power off\n" in said

    put(tmp_path, "tenax", f"{_HEARD_ONCE}{end}\n")
    environment, script = prepared(tmp_path, "shutdown", orphan_after="1s")
    # Nobody waits for a script that waits for its agent.
    done = ended(["sh", "-c", 'sh -c "$1" &', "sh", script], environment, tmp_path, is_off)
    assert told.read_text().splitlines()[:3] == ["shutdown -P +20", "shutdown -c", "shutdown -P now"]
    assert "tenax: the lease of this machine was not renewed for 1 s: power off\n" in done.stderr


def test_a_machine_powers_itself_off_once_its_time_is_over(tmp_path: Path) -> None:
    """However alive its agent is."""
    told = tmp_path / "state" / "notes"
    put(tmp_path, "tenax", '#!/bin/sh\nwhile :; do date +%s%N > "$TENAX_AGENT_LEASE_FILE"; sleep 0.1; done\n')
    environment, script = prepared(tmp_path, "shutdown", max_run="2s", max_agent_starting_period="1s")
    command = ["sh", "-c", 'sh -c "$1" &', "sh", script]
    said = "tenax: the time of this machine is over (max_run): power off\n"
    ended(
        command,
        environment,
        tmp_path,
        lambda: told.exists() and "-P now" in told.read_text() and said in (tmp_path / "err").read_text(),
    )


@pytest.mark.parametrize("hangs", [False, True], ids=["gone", "hangs"])
def test_a_machine_powers_itself_off_whoever_reads_what_it_says(tmp_path: Path, hangs: bool) -> None:
    """What takes its console may be gone by then, or take nothing more."""
    told = tmp_path / "state" / "notes"
    put(tmp_path, "tenax", f"{_HEARD_ONCE}exec sleep 600\n")
    environment, script = prepared(tmp_path, "shutdown", orphan_after="1s")
    reader, writer = os.pipe()
    with (
        open(reader, "rb", 0) as console,
        subprocess.Popen(
            ["sh", "-c", script], env=environment, stdout=subprocess.DEVNULL, stderr=writer, start_new_session=True
        ) as it,
    ):
        try:
            while b"start the agent: begun" not in console.readline():
                pass
            if hangs:
                full = os.open(f"/proc/self/fd/{writer}", os.O_WRONLY | os.O_NONBLOCK)
                with contextlib.suppress(BlockingIOError):
                    while True:
                        os.write(full, b"x")
                os.close(full)
            else:
                os.close(writer)
                console.close()
            wait_for(lambda: told.exists() and "shutdown -P now\n" in told.read_text(), "its end", 20)
        finally:
            os.killpg(it.pid, signal.SIGKILL)
            if hangs:
                os.close(writer)


def test_a_lease_that_is_renewed_or_was_never_begun_keeps_its_machine(tmp_path: Path) -> None:
    """An agent of an older release renews none: it is on its own, as it was."""
    renews = '#!/bin/sh\nfor n in 1 2 3 4 5 6 7 8 9; do echo $n > "$TENAX_AGENT_LEASE_FILE"; sleep 0.4; done\n'
    for limit, agent in {"3s": renews, "1s": "#!/bin/sh\nsleep 2\n"}.items():
        place = tmp_path / limit
        put(place, "tenax", agent)
        run(place, "shutdown", orphan_after=limit)
        assert (place / "state" / "notes").read_text().splitlines() == ["shutdown -P +20", "shutdown -c"]


def test_its_own_end_comes_first_and_then_the_agent(tmp_path: Path) -> None:
    """With the id, the pool and the token of this machine alone; what is odd in a name stays one word."""
    done = run(tmp_path, "shutdown", "tenax", pool="it's mine", startup_script="echo set up", instance_slots=2)
    assert (done.returncode, "failed" in done.stderr) == (0, False)
    state = tmp_path / "state"
    first, *_ = (state / "notes").read_text().splitlines()
    assert first == "shutdown -P +20"
    [agent] = [line for line in (state / "notes").read_text().splitlines() if line.startswith("tenax ")]
    assert agent == (
        "tenax agent --master-url http://127.0.0.1:1 --agent-id m-1 --pool it's mine --slots 2 --slot-type cpu "
        f"--dir {state}/agent --join-token-file {state}/join-token"
    )
    assert (state / "join-token").read_text() == "tnxm_secret\n"
    assert (state / "join-token").stat().st_mode & 0o077 == 0
    assert (state / "startup.log").read_text() == "set up\n"


def test_what_fails_is_said_on_the_console(tmp_path: Path) -> None:
    """The last lines of the operator's own script; and what an image lacks."""
    failed = tmp_path / "failed"
    failed.mkdir()
    done = run(failed, "shutdown", "tenax", startup_script="echo no room on /\nfalse\necho never")
    assert done.returncode == 1
    assert done.stderr.endswith("no room on /\ntenax: run startup_script: failed: no room on /\n")
    assert "never" not in done.stderr
    bare = tmp_path / "bare"
    bare.mkdir()
    done = run(bare, "shutdown")
    assert done.returncode == 1
    assert "tenax: find tenax: failed: neither this image nor the master has one to install" in done.stderr


#: Notes what it is given: the command line, and what is sent.
_CURL = '#!/bin/sh\necho "$@" >> "$TENAX_MACHINE_DIR/commands"\ncat >> "$TENAX_MACHINE_DIR/said"\n'


def said(place: Path, startup_script: str, **programs: str) -> str:
    """What a machine tells the master of its start, where these programs take the place of the system's."""
    for name, text in {"curl": _CURL, **programs}.items():
        put(place, name, text)
    run(place, "shutdown", "tenax", startup_script=startup_script)
    assert "tnxm_" not in (place / "state" / "commands").read_text()
    return (place / "state" / "said").read_text()


def test_each_step_is_said_with_why_it_failed(tmp_path: Path) -> None:
    """An operator's own steps, too; the token is on no command line."""
    step = "tenax_step 'install torch' {limit} sh -c '{command}'\necho never"
    told = said(tmp_path / "1", step.format(limit=60, command="echo it is not there; echo; exit 3"))
    parts = [
        f"tnxm_secret\nm-1\n{name}\n{state}\n{why}\n"
        for name, state, why in (
            ("run startup_script", "begun", ""),
            ("install torch", "begun", ""),
            ("install torch", "failed", "it is not there"),
            ("run startup_script", "failed", "tenax: install torch: failed: it is not there"),
        )
    ]
    assert told == "".join(parts)
    assert "install torch\nfailed\nit took longer than 1 s\n" in said(
        tmp_path / "2", step.format(limit=1, command="exec sleep 600")
    )
    full = "#!/bin/sh\necho Filesystem\necho /dev/sda1 100 100 7 93% /\n"
    told = said(tmp_path / "3", step.format(limit=60, command="echo Error 28; exit 1"), df=full)
    assert "install torch\nfailed\nno room on /\n" in told


@contextmanager
def served(wheel: AgentWheel, sent: bytes, asked_with: list[bytes], status: int = 200) -> Iterator[str]:
    """A master that sends these bytes for its wheel, and notes what it was asked with."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/agents/wheel":
                asked_with.append(body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.long
def test_an_image_without_tenax_gets_the_masters_own(tmp_path: Path) -> None:
    """Into a directory of its own, with what the named Python has of what it needs; by a step that is said."""
    wheel, bodies = own_wheel(), []
    with served(wheel, wheel.content, bodies) as url:
        settings = {"master_url": url, "agent_install": {"python": sys.executable}}
        # An agent that cannot work with its settings: it starts, and says so.
        done = run(
            tmp_path, "shutdown", wheel=wheel, startup_script='echo "x: 1" > $TENAX_MACHINE_DIR/agent.yaml', **settings
        )
    assert bodies == [f"tnxm_secret\nm-1\n{wheel.sha256}".encode()]
    assert "tenax: install what tenax needs: done" in done.stderr
    assert "tenax: start the agent: failed: " in done.stderr
    assert (tmp_path / "state" / "venv" / "bin" / "tenax").exists()
    assert "x (line 1): unknown key 'x'" in (tmp_path / "state" / "agent.log").read_text()


def test_a_wheel_that_is_another_is_not_installed(tmp_path: Path) -> None:
    """One bit of it: the step is named, and nothing was made of it."""
    wheel, bodies = own_wheel(), []
    wrong = wheel.content[:-1] + bytes([wheel.content[-1] ^ 1])
    with served(wheel, wrong, bodies) as url:
        settings = {"master_url": url, "agent_install": {"python": sys.executable}}
        done = run(tmp_path, "shutdown", wheel=wheel, **settings)
    assert done.returncode == 1
    assert done.stderr.endswith(
        "tenax: fetch tenax: failed: the wheel is not the one that this script is for: its SHA-256 differs\n"
    )
    assert not (tmp_path / "state" / wheel.name).exists()
    assert not (tmp_path / "state" / "venv").exists()


def run_at_hand(
    place: Path, wheel: AgentWheel, url: str = "http://127.0.0.1:1", cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """The script for a machine at hand, as whoever logs in there from ``cwd``."""
    machine = AtHand(url, "default", "tnxj_secret")
    script = at_hand_script(machine, AgentInstallSettings(python=sys.executable), wheel)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(place), "TENAX_MACHINE_DIR": str(place / "state"), **variables}
    return subprocess.run(
        ["sh"],
        input=script,
        env=environment,
        cwd=cwd or place,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


#: What has its SHA-256, and pip does not install.
_NO_WHEEL = AgentWheel("tenax-1-py3-none-any.whl", b"no wheel", hashlib.sha256(b"no wheel").hexdigest())


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """Such as that of a cluster, where the token of the operator's file has the name that the script's has."""
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    for name in ("join-token", "agent.log"):
        (state / name).write_text("the cluster's")
    with served(_NO_WHEEL, _NO_WHEEL.content, []) as url:
        done = run_at_hand(tmp_path, _NO_WHEEL, url)
    assert done.returncode == 1
    assert f"make an agent: failed: {state} holds something else" in done.stderr
    assert {path.name: path.read_text() for path in state.iterdir()} == dict.fromkeys(
        ("join-token", "agent.log"), "the cluster's"
    )
    assert state.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    """They could exchange what is installed. One with settings of the agent alone is its own."""
    state = tmp_path / "state"
    state.mkdir()
    (state / "agent.yaml").touch()
    state.chmod(0o777)
    with served(_NO_WHEEL, _NO_WHEEL.content, []) as url:
        done = run_at_hand(tmp_path, _NO_WHEEL, url)
        assert "others than you may write to" in done.stderr
        assert [path.name for path in state.iterdir()] == ["agent.yaml"]
        state.chmod(0o755)
        for _ in range(2):
            done = run_at_hand(tmp_path, _NO_WHEEL, url)
            assert "tenax: make an environment: done" in done.stderr


def test_an_agent_that_tries_to_join_is_left_alone(tmp_path: Path) -> None:
    """What it runs from is not taken away from under it. A number that another process has by now keeps nobody up."""
    state = tmp_path / "state"
    state.mkdir()
    (state / "bootstrapped").touch()
    command = [sys.executable, "-c", "input()", "--dir", str(state / "agent")]
    with (
        served(_NO_WHEEL, _NO_WHEEL.content, []) as url,
        subprocess.Popen(command, stdin=subprocess.PIPE) as agent,
    ):
        try:
            (state / "agent.pid").write_text(str(agent.pid))
            done = run_at_hand(tmp_path, _NO_WHEEL, url)
        finally:
            agent.kill()
        assert f"make an agent: failed: one that tries to join works in {state}" in done.stderr
        assert not (state / "join-token").exists()
        (state / "agent.pid").write_text(str(os.getpid()))
        assert "tenax: fetch tenax: done" in run_at_hand(tmp_path, _NO_WHEEL, url).stderr


def test_what_lies_where_it_is_run_is_not_executed(tmp_path: Path) -> None:
    """Python looks there for modules first, and everyone may write to /tmp."""
    here = tmp_path / "here"
    here.mkdir()
    for name in ("venv", "pip", "hashlib", "site"):
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'taken')!r}, 'w')")
    with served(_NO_WHEEL, _NO_WHEEL.content, []) as url:
        done = run_at_hand(tmp_path, _NO_WHEEL, url, here)
    assert not (tmp_path / "taken").exists()
    assert "tenax: install tenax: failed: " in done.stderr


@pytest.mark.parametrize(
    ("status", "answer"),
    [(404, b"{}"), (429, b"slowly"), (503, b"x" * 998 + "é".encode() + b"x"), (502, b"\xff")],
)
def test_of_several_masters_another_has_the_wheel(tmp_path: Path, status: int, answer: bytes) -> None:
    """One of an older version has no such route; and what stands before it answers as it likes."""
    bodies: list[bytes] = []
    with served(_NO_WHEEL, answer, [], status) as away, served(_NO_WHEEL, _NO_WHEEL.content, bodies) as there:
        done = run_at_hand(tmp_path, _NO_WHEEL, f"{away},{there}")
    assert "tenax: fetch tenax: done" in done.stderr
    assert len(bodies) == 1


def test_a_token_that_is_refused_is_not_shown_elsewhere(tmp_path: Path) -> None:
    """It is of no use with any of them; the master's reason is the machine's."""
    bodies: list[bytes] = []
    refusal = b'{"error":{"message":"the join token is wrong"}}'
    with served(_NO_WHEEL, refusal, [], 403) as first, served(_NO_WHEEL, b"", bodies) as second:
        done = run_at_hand(tmp_path, _NO_WHEEL, f"{first},{second}")
    assert done.stderr.endswith("tenax: fetch tenax: failed: the join token is wrong\n")
    assert bodies == []


def start_script(**changes: str) -> str:
    """What a machine at hand starts its agent with, now and after a restart."""
    script = at_hand_script(
        AtHand("http://m", **{"pool": "p", "token": "t", **changes}), AgentInstallSettings(), _NO_WHEEL
    )
    return script.partition("<<'TENAX_END_OF_START'\n")[2].partition("TENAX_END_OF_START\n")[0]


def test_a_token_is_gone_however_late_the_agent_joins(tmp_path: Path) -> None:
    """The script that brought it waits two minutes, and the agent tries on."""
    program = tmp_path / "venv" / "bin" / "tenax"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n: > agent/credential\nwhile [ -f join-token ]; do sleep 0.1; done\n")
    program.chmod(0o755)
    (tmp_path / "agent").mkdir()
    (tmp_path / "join-token").touch()
    (tmp_path / "start.sh").write_text(start_script())
    assert subprocess.run(["sh", tmp_path / "start.sh"], timeout=60, check=False).returncode == 0


def test_names_that_look_like_options_are_names() -> None:
    """Both may begin with a dash."""
    [line] = [line for line in start_script(pool="-p q", agent_id="-x").splitlines() if line.startswith("set -- ")]
    _, _, _, agent, *flags = shlex.split(line)
    given = _arguments([]).parse_args(flags)
    assert (agent, given.pool, given.agent_id) == ("agent", "-p q", "-x")


def test_an_agent_that_cannot_work_says_why(tmp_path: Path) -> None:
    """Its last line; one that breaks is started again, and one that was told to leave is not."""
    breaks = "[ -f again ] || { touch again; exit 1; }"
    agent = f'#!/bin/sh\n{breaks}\necho "tenax agent: no cuda device is visible" >&2\nexit 2\n'
    told = said(tmp_path, "", tenax=agent, sleep="#!/bin/sh\n")
    assert told.endswith("start the agent\nfailed\ntenax agent: no cuda device is visible\n")
    assert (tmp_path / "state" / "agent.log").stat().st_mode & 0o077 == 0


def test_what_an_operator_writes_for_the_agent_is_read(tmp_path: Path) -> None:
    """By startup_script; and tasks of other users come through to what is theirs."""
    run(tmp_path, "shutdown", "tenax", startup_script='echo "labels: {a: b}" > "$TENAX_MACHINE_DIR/agent.yaml"')
    assert (
        f"tenax agent --config {tmp_path}/state/agent.yaml --master-url" in (tmp_path / "state" / "notes").read_text()
    )
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o711


def _shellcheck() -> str:
    if shutil.which("shellcheck") is None and shutil.which("apt-get") and os.geteuid() == 0:
        for words in (["update"], ["install", "-y", "--no-install-recommends", "shellcheck"]):
            subprocess.run(["apt-get", *words], capture_output=True, check=False)
    return shutil.which("shellcheck") or ""


def test_the_script_is_good_shell(tmp_path: Path) -> None:
    """All that ShellCheck knows of, in the script and in what it writes for operators' scripts."""
    program = _shellcheck()
    if not program:
        pytest.skip("shellcheck is not here and could not be installed")
    settings = provider_settings(max_run="1h", cpu_slots_allowed=False)
    script = bootstrap_script("m-1", "it's mine", "tnxm_secret", settings, own_wheel())
    steps = script.partition("<<'TENAX_END_OF_STEPS'\n")[2].partition("\nTENAX_END_OF_STEPS\n")[0]
    machine = AtHand("http://a,http://b", "it's mine", "tnxj_secret", "box", "-----BEGIN CERTIFICATE-----\n")
    at_hand = at_hand_script(machine, AgentInstallSettings(wheelhouse="/opt/wheels"), own_wheel())
    start = at_hand.partition("<<'TENAX_END_OF_START'\n")[2].partition("\nTENAX_END_OF_START\n")[0]
    for name, text in (("script", script), ("steps", steps), ("at_hand", at_hand), ("start", start)):
        (tmp_path / name).write_text(text)
        found = subprocess.run([program, "-s", "sh", tmp_path / name], capture_output=True, text=True, check=False)
        assert (found.stdout, found.returncode) == ("", 0)


def test_a_machine_of_gpus_does_not_pass_for_one_of_the_cpu() -> None:
    """And one without slots offers none."""
    assert "--slot-type cuda" in bootstrap_script("m-1", "p", "t", provider_settings(cpu_slots_allowed=False), None)
    assert "--slot-type none" in bootstrap_script("m-1", "p", "t", provider_settings(instance_slots=0), None)


def test_an_agent_that_cannot_keep_tasks_from_metadata_does_not_start() -> None:
    """By an option, which an older one refuses; unless that is asked for there is none."""
    script = bootstrap_script("m-1", "p", "t", provider_settings(tasks_see_metadata=False), None)
    assert '--join-token-file "$dir/join-token" --hide-metadata\n' in script
    assert _arguments([]).parse_args(["--hide-metadata"]).hide_metadata
    assert "hide-metadata" not in bootstrap_script("m-1", "p", "t", provider_settings(), None)


def test_the_largest_script_fits_into_user_data() -> None:
    """Whatever else the settings say; and the same order is the same request, which AWS insists on."""
    install = {"python": "/" + "p" * 400, "wheelhouse": "/" + "$" * 400}
    settings = provider_settings(
        startup_script="#" * (MAX_STARTUP_SCRIPT_BYTES - 802 + len("python3")), agent_install=install,
        master_url=f"http://127.0.0.1/{'x' * 500}", tasks_see_metadata=False, max_run="30d", cpu_slots_allowed=False,
    )  # fmt: skip
    script = bootstrap_script(f"m-{'0' * 20}", "p" * 200, "t" * 64, settings, own_wheel())
    assert len(script.encode()) <= MAX_BYTES
    order = MachineOrder("m-1", "default", settings, script)
    assert run_parameters("c", order) == run_parameters("c", order)
    assert run_parameters("c", order)["ClientToken"] == "m-1"
