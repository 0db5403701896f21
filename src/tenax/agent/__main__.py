"""``python -m tenax.agent``: one agent process.

Settings come from a file (``--config``), the environment (``TENAX_AGENT_...``) and flags. Exit status: 0 after it was
asked to end (its containers run on), 2 when it cannot work with its settings, 1 for anything else.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import signal
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path

from tenax.errors import TenaxError, UserError
from tenax.host.runtimes import CHOICES
from tenax.jsonvalue import Json


def main() -> int:
    """Run; the exit status."""
    # Hardly anything of what is loaded until it works is ever garbage.
    gc.disable()
    # structlog loads it for tracebacks that show the values of variables, which ours never do: a tenth of the start.
    sys.modules["rich"] = None  # type: ignore[assignment]
    import uvloop

    from tenax.agent.app import run
    from tenax.agent.log_setup import set_up
    from tenax.config.agent import SLOT_TYPES, load_agent_settings

    given = _arguments(SLOT_TYPES).parse_args()
    flags: dict[str, Json] = {
        "master_url": given.master_url,
        "task_master_url": given.task_master_url,
        "agent_id": given.agent_id,
        "pool": given.pool,
        "slots": int(given.slots) if given.slots is not None and given.slots.isdigit() else given.slots,
        "slot_type": given.slot_type,
        "visible_gpus": given.visible_gpus,
        "labels": given.labels,
        "dir": given.dir,
        "runtime": given.runtime,
        "docker_host": given.docker_host,
        "python": given.python,
        "join_token_file": given.join_token_file,
        "tls.master_cert": given.master_cert,
        "tasks_see_metadata": False if given.hide_metadata else None,
        "log_level": given.log_level,
    }
    try:
        settings = load_agent_settings(given.config, flags=flags)
        set_up(settings.log_level, json_lines=given.log_json)
        # What is loaded by now stays for good: the collector need not look through it again and again.
        gc.freeze()
        gc.enable()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_until_signalled(run(settings, make_parents=not given.existing_parent)))
    except UserError as error:
        sys.stderr.write(f"tenax agent: {error}\n")
        return 2
    except TenaxError as error:
        sys.stderr.write(f"tenax agent: {error}\n")
        return 1
    return 0


async def _until_signalled(working: Coroutine[None, None, None]) -> None:
    """Until SIGTERM or SIGINT, or its own end."""
    work = asyncio.ensure_future(working)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, work.cancel)
    # Behind `nohup`, or in the background of a script, it goes on when these come. What it starts must not inherit that
    # they are ignored: trials would not start where their imports are loaded.
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            loop.add_signal_handler(number, lambda: None)
    with contextlib.suppress(asyncio.CancelledError):
        await work


def _arguments(slot_types: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tenax.agent", description="An agent: offers this machine to a cluster.")
    parser.add_argument("--config", type=Path, help="YAML file with settings")
    parser.add_argument("--master-url", help="address of the master (http://127.0.0.1:8080)")
    parser.add_argument("--task-master-url", help="where tasks reach the master, if not at the same address")
    parser.add_argument("--agent-id", help="unique in the cluster (the host's name)")
    parser.add_argument("--pool", help="resource pool to be in (default)")
    parser.add_argument("--slots", help="'auto', or how many slots to offer")
    parser.add_argument("--slot-type", choices=slot_types, help="which devices are slots")
    parser.add_argument("--visible-gpus", help="indices or uuids of the GPUs to offer, with commas between")
    parser.add_argument("--labels", help="what this machine is, as zone=a,disk=nvme: tasks can ask for it")
    parser.add_argument("--dir", help="directory for what this agent keeps on disk")
    parser.add_argument(
        "--existing-parent", action="store_true", help="start only where what that directory is in is there already"
    )
    parser.add_argument("--runtime", choices=CHOICES, help="what runs containers")
    parser.add_argument("--docker-host", help="socket of the Docker Engine API")
    parser.add_argument("--python", help="interpreter of tasks in the process runtime (the agent's own)")
    parser.add_argument("--join-token-file", help="file with the token that lets a new agent in")
    parser.add_argument("--master-cert", help="certificate (PEM) by which an https master is trusted")
    parser.add_argument("--hide-metadata", action="store_true", help="keep tasks from the cloud's metadata service")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"))
    parser.add_argument("--log-json", action="store_true", help="one JSON object per line")
    return parser


if __name__ == "__main__":
    sys.exit(main())
