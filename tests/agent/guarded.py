"""A machine whose cloud has a metadata service, in a network of its own: run as ``unshare -n python -m`` this.

``python -m tests.agent.guarded see|hide``: an agent runs there, and what can reach the service is printed as JSON. The
service is at its real address, and beside the machine there is a network as that of a container, routed through it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenax.runtime import metadata_guard
from tests.agent.host import Host, spec
from tests.agent.master_double import MasterDouble
from tests.kits.machine import home, wait_for
from tests.kits.metadata import aws_metadata

ADDRESS = "169.254.169.254"
#: The uid of nobody.
UID = 65534
#: Prints a token of the service, or that there is none.
ASKS = f"""
import urllib.request as r
try:
    asks = r.Request("http://{ADDRESS}/latest/api/token", method="PUT")
    asks.add_header("X-aws-ec2-metadata-token-ttl-seconds", "60")
    print(r.build_opener(r.ProxyHandler({{}})).open(asks, timeout=1).read().decode())
except OSError as error:
    print("none")
"""


def sh(*words: str) -> None:
    subprocess.run(words, check=True)


def is_held() -> bool:
    """Whether what comes from containers meets the rules."""
    listing = ["iptables", "-t", "mangle", "-S", "PREROUTING"]
    return "-j TENAX-METADATA" in subprocess.run(listing, capture_output=True, text=True, check=True).stdout


@contextmanager
def container() -> Iterator[list[str]]:
    """A network of its own behind the machine's; what a command begins with that runs in it."""
    with subprocess.Popen(["unshare", "-n", "sh", "-c", "echo in; exec sleep 600"], stdout=subprocess.PIPE) as inside:
        try:
            assert inside.stdout is not None
            inside.stdout.readline()
            enter = ["nsenter", "-t", str(inside.pid), "-n"]
            sh("ip", "link", "add", "m0", "type", "veth", "peer", "name", "c0", "netns", str(inside.pid))
            sh("ip", "addr", "add", "10.9.0.1/24", "dev", "m0")
            sh("ip", "link", "set", "m0", "up")
            sh(*enter, "ip", "addr", "add", "10.9.0.2/24", "dev", "c0")
            sh(*enter, "ip", "link", "set", "c0", "up")
            sh(*enter, "ip", "route", "add", "default", "via", "10.9.0.1")
            yield enter
        finally:
            inside.kill()


async def outcome(master: MasterDouble, code: str, uid: int | None) -> str:
    """What a task prints, or why it did not start."""
    its = spec(code, uid=uid)
    await master.run(its)
    await master.until(lambda: master.exited(its.container_id))
    exit = master.reports[its.container_id].exit
    return master.text(its.container_id).strip() or (exit.reason if exit is not None else "")


async def look(directory: Path, *, see: bool) -> dict[str, str]:
    """Who reaches the service."""
    metadata_guard._LOOK_S = 0.1
    sh("ip", "link", "set", "lo", "up")
    sh("ip", "addr", "add", f"{ADDRESS}/32", "dev", "lo")
    seen: dict[str, str] = {}
    with container() as enter, aws_metadata((ADDRESS, 80)):

        async def asked_inside() -> str:
            command = [*enter, sys.executable, "-c", ASKS]
            done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
            return done.stdout.strip()

        async with MasterDouble() as master:
            host = Host(directory / "agent", master.url)
            try:
                host.start(cloud="aws", metadata_every_s=0.05, tasks_see_metadata=see)
                await master.until(lambda: master.notices)
                seen["agent"] = f"hears of {len(master.notices[-1].notices)} notices"
                seen["task"] = await outcome(master, ASKS, UID)
                seen["task of root"] = await outcome(master, ASKS, None)
                seen["container"] = await asked_inside()
                seen["privileges"] = await outcome(master, "print(open('/proc/self/status').read())", UID)
                if not see:
                    # Somebody sets up a firewall: what starts then meets the rules again.
                    sh("iptables", "-F")
                    sh("iptables", "-I", "OUTPUT", "-j", "ACCEPT")
                    seen["task after a change"] = await outcome(master, ASKS, UID)
                    sh("iptables", "-t", "mangle", "-F")
                    sh("iptables", "-t", "mangle", "-X")
                    await asyncio.to_thread(wait_for, is_held, "the rules again")
                    seen["container after a change"] = await asked_inside()
            finally:
                await host.clean()
    return seen


if __name__ == "__main__":
    with home() as place:
        print(json.dumps(asyncio.run(look(place, see=sys.argv[1] == "see"))))
