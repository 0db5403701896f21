"""Forks supervisors: a program that has `tenax.runtime.supervisor` loaded, so that a container costs a fork and not the
start of an interpreter.

The agent runs it from its library (`tenax.runtime.library`) as ``python -I -S forkserver.py <descriptor of a stream
socket> <library> <module>...``. A request is :data:`FRAME` bytes, container id and directory, each ended by a NUL, with
three descriptors: the container's lock, its ready pipe, its supervisor's log. There is no answer: the supervisor itself
tells by the pipe. Standard library only, and of that only what loads in a millisecond.

The modules are first programs of tasks, the library's own and of the standard library alone, and what they import on
their way (later, as the task's user, it might be out of reach). A container that is to start
with ``-m <module>``, and whose plan says ``loaded`` (its interpreter would run this very library), runs the module's
``main`` in the forked process, which then becomes the user's program: one interpreter less to start.

Rules it keeps:

- A supervisor is in a session of its own and outlives this program, which ends with the agent (end of the socket).
- What came with a request is closed here as soon as there is a child: the lock is the supervisor's alone.
- It does nothing but fork: one thread, nothing open but the socket.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found, unused-ignore]
import _socket
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tenax.runtime.main_process import ExecPlan, Execute

    Program = Callable[[], int]

#: Two names and a path fit; an exact length, so that a stream of them needs no parsing.
FRAME = 8192
_INT = 4


def serve(door: _socket.socket, supervise: Callable[[list[str]], int]) -> None:
    """Fork a child for each request until the other end is closed."""
    while serve_one(door, supervise):
        pass


def serve_one(door: _socket.socket, supervise: Callable[[list[str]], int]) -> bool:
    """Wait for a request and fork a child for it; False at the end."""
    request, descriptors = receive(door)
    if len(request) < FRAME:
        return False
    if os.fork() == 0:
        door.close()
        become(request, descriptors, supervise)
    for descriptor in descriptors:
        os.close(descriptor)
    return True


def receive(door: _socket.socket) -> tuple[bytes, list[int]]:
    """The next request; a short one is the end."""
    request = b""
    descriptors: list[int] = []
    while len(request) < FRAME:
        part, ancillary, _, _ = door.recvmsg(FRAME - len(request), _socket.CMSG_SPACE(3 * _INT))
        if not part:
            break
        request += part
        for _, _, data in ancillary:
            descriptors += [
                int.from_bytes(data[start : start + _INT], sys.byteorder) for start in range(0, len(data), _INT)
            ]
    return request, descriptors


def become(request: bytes, descriptors: list[int], supervise: Callable[[list[str]], int]) -> None:
    """In the forked child: turn into the supervisor. Never returns."""
    status = 1
    try:
        os.setsid()
        name_process(b"supervisor")
        lock, ready, log = descriptors
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        container_id, directory, *_ = request.split(b"\0")
        os.chdir(directory)
        status = supervise([container_id.decode(), str(lock), str(ready)])
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
    finally:
        # At once: what an interpreter does at its end is of no use to anybody here.
        os._exit(status)


def programs_of(modules: list[str]) -> dict[bytes, Program]:
    """The ``main`` of each module that has one; what does not load here starts in an interpreter."""
    programs: dict[bytes, Program] = {}
    for name in modules:
        try:
            module = __import__(name, fromlist=["main"])
        except Exception:
            sys.excepthook(*sys.exc_info())
            continue
        if hasattr(module, "main"):
            programs[name.encode()] = module.main
    return programs


def executing(programs: dict[bytes, Program], execute: Execute) -> Execute:
    """``execute``, but for programs that are loaded here."""

    def run(plan: ExecPlan, report_fd: int) -> None:
        named = len(plan.argv) == 3 and plan.argv[1] == b"-m" and "loaded" in plan.single
        program = programs.get(plan.argv[2]) if named else None
        if program is None:
            execute(plan, report_fd)
            return
        # From here on the program tells by itself what goes wrong.
        os.close(report_fd)
        os.environ.clear()
        os.environb.update(plan.env)
        sys.executable = os.fsdecode(plan.argv[0])
        status = 1
        try:
            status = program()
        except BaseException:
            sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(status)

    return run


def name_process(name: bytes) -> None:
    """What lists of processes show beside the command line, which is that of the forkserver; Linux only."""
    try:
        with open("/proc/self/comm", "wb", 0) as file:
            file.write(name)
    except OSError:
        return


def main(arguments: list[str]) -> int:
    # Children are not waited for: their ends are on disk, and in a pidfd of the agent's.
    _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)
    sys.argv = sys.argv[:1]
    door, library, *modules = arguments
    sys.path.append(library)
    from tenax.runtime import main_process, supervisor

    execute = executing(programs_of(modules), main_process.execute)
    serve(_socket.socket(fileno=int(door)), lambda arguments: supervisor.main(arguments, execute))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
