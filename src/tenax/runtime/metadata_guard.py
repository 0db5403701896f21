"""Keeps tasks from the metadata service of this machine's cloud, which gives the machine's own rights to whoever asks.

Rules:

- What a user other than root sends there from this machine is refused, and what comes in from any other network, such
  as a container's, is dropped, by rules of the kernel's packet filter that stand before all others. Root, and so the
  agent, reaches the service; names and the time, which some clouds serve at the same address, are for everyone.
- So a task must not be root, and must have no way to become it: it is refused where it could. A container with a
  network of its own may be root in it where it has nothing else of the machine.
- The rules are looked at before each start and every few seconds. Where they cannot be made nothing starts.
"""

from __future__ import annotations

import asyncio
import grp
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import structlog

from tenax.config.agent import AgentSettings, AllowedSettings
from tenax.errors import TenaxError, UserError
from tenax.host.disk import is_there
from tenax.runtime import limits
from tenax.runtime.port import StartFailed
from tenax.runtime.processes import LINUX
from tenax.runtime.users import TaskUser
from tenax.wire.agents import ContainerSpec

log = structlog.get_logger("tenax.runtime")

#: Where the services of AWS and Google are, by the program that makes rules for such addresses.
ADDRESSES: Mapping[str, Sequence[str]] = {
    "iptables": ("169.254.169.254/32",),
    "ip6tables": ("fd00:ec2::254/128", "fd20:ce::254/128"),
}
_CHAIN = "TENAX-METADATA"
#: Names and the time, which give no rights.
_FOR_EVERYONE = ("-p udp --dport 53", "-p udp --dport 123", "-p tcp --dport 53")
_LOOK_S = 5.0
_TIMEOUT_S = 30
#: Of capabilities that a configuration can ask for, those that lead nowhere beyond the container.
_HARMLESS = frozenset({"IPC_LOCK", "SYS_NICE", "SYS_RESOURCE"})
#: Whoever is in one of these groups can become root.
_AS_GOOD_AS_ROOT = frozenset(
    {"admin", "disk", "docker", "google-sudoers", "incus-admin", "lxd", "root", "sudo", "wheel"}
)
_ELSE = "or let tasks see that service (tasks_see_metadata: true in the provider's settings)"
_HIDDEN = "tasks are kept from this machine's metadata service (tasks_see_metadata: false)"


class GuardFailed(TenaxError):
    """The rules of the packet filter cannot be made, or looked at."""


class _NotInstalled(GuardFailed):
    """A program that makes the rules is not on this machine."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the rules stand in a table, and what is matched and done there."""

    table: str
    chain: str
    match: str
    verdict: str


#: ``lo`` is how this machine reaches itself, which the first place has judged already. No container engine touches the
#: second, which packets meet before anything that one accepts.
_PLACES = (
    _Place("filter", "OUTPUT", "-m owner ! --uid-owner 0", "REJECT"),
    _Place("mangle", "PREROUTING", "! -i lo", "DROP"),
)


class MetadataGuard:
    """The rules on this machine. Calls block, and may be made at any time by anybody."""

    def hold(self) -> None:
        """Make them where they are not, or not the first. Raises GuardFailed."""
        for program, addresses in ADDRESSES.items():
            if program == "ip6tables" and not is_there("/proc/net/if_inet6"):
                continue
            if lines := [line for place in _PLACES for line in _missing(program, place, addresses)]:
                log.info("tasks are kept from the metadata service", program=program)
                # All at once: at no moment is anything let through.
                _run([f"{program}-restore", "-w", "10", "--noflush"], "\n".join([*lines, ""]))


def guard_of(settings: AgentSettings) -> MetadataGuard | None:
    """None: tasks may see the service."""
    return None if settings.tasks_see_metadata else MetadataGuard()


async def begin(settings: AgentSettings) -> None:
    """Before anything starts.

    Raises UserError where this machine cannot keep tasks from the service, GuardFailed where it may at another try.
    """
    guard = guard_of(settings)
    if guard is None:
        return
    if not LINUX or os.geteuid() != 0:
        raise UserError(f"{_HIDDEN}, which takes an agent that is root, on Linux: start it as root, {_ELSE}")
    try:
        await asyncio.to_thread(guard.hold)
    except _NotInstalled as failed:
        raise UserError(f"{_HIDDEN}, and that cannot be done here: {failed.message}") from None
    except GuardFailed as failed:
        raise GuardFailed(f"{_HIDDEN}, and that cannot be done now: {failed.message}") from None


async def watch(settings: AgentSettings) -> None:
    """Keep the rules where somebody takes them away; for ever."""
    guard = guard_of(settings)
    if guard is None:
        await asyncio.Event().wait()
    assert guard is not None
    while True:
        try:
            await asyncio.to_thread(guard.hold)
        except GuardFailed as failed:
            log.error("tasks may see the metadata service", reason=failed.message)
        await asyncio.sleep(_LOOK_S)


async def check_start(
    guard: MetadataGuard | None, spec: ContainerSpec, allowed: AllowedSettings, network: str, who: TaskUser | None
) -> None:
    """Raises StartFailed where this one could see the service.

    ``network``: of its container; empty for a plain process. ``who``: whom that would run as.
    """
    if guard is None:
        return
    reason = refusal(spec, allowed, network, _names(who))
    if reason:
        raise StartFailed(f"{_HIDDEN}, and {reason}", platform=False)
    if network and not spec.uid:
        try:
            await asyncio.to_thread(limits.check_unchangeable, _as_mapped(spec), allowed, by_root=True)
        except StartFailed as failed:
            raise StartFailed(f"{_HIDDEN}, and {failed.message}", platform=failed.platform) from None
    try:
        await asyncio.to_thread(guard.hold)
    except GuardFailed as failed:
        raise StartFailed(f"{_HIDDEN}, and that cannot be done now: {failed.message}", platform=True) from None


def refusal(spec: ContainerSpec, allowed: AllowedSettings, network: str, groups: Sequence[str]) -> str:
    """Why nothing would keep it from the service, and what to do, for people; "" where the rules do.

    ``groups``: names of those that a plain process is in.
    """
    mapped = "an administrator gives its owner a uid (tenax user link-with-agent-user)"
    if not spec.uid and not network:
        return f"it would run as root, which sees it: {mapped}"
    if not spec.uid and network == "host":
        return (
            f"it would be root on the machine's own network, which sees it: {mapped}, or it runs on one machine alone"
        )
    if mighty := sorted(_AS_GOOD_AS_ROOT.intersection(groups)):
        return f"uid {spec.uid} is in the group {mighty[0]}, and could become root: link its owner with another uid"
    if network not in ("", "bridge", "host", "none"):
        return f"its network {network} may go round that: leave it out, or use bridge"
    named = [name for name in spec.add_capabilities if name.upper().removeprefix("CAP_") not in _HARMLESS]
    if network and named:
        return f"the capability {named[0]} may go round that: leave it out"
    extra = limits.refusals(_as_mapped(spec), allowed) if network else []
    if not spec.uid and extra:
        return f"as root it may go round that with {extra[0].what}: leave that out, or {mapped}"
    return ""


def _as_mapped(spec: ContainerSpec) -> ContainerSpec:
    """Root in a container is as little trusted with the machine as anybody who has a uid."""
    return msgspec.structs.replace(spec, uid=spec.uid or 1)


def _names(who: TaskUser | None) -> list[str]:
    names = []
    for number in who.groups if who is not None else ():
        try:
            names.append(grp.getgrgid(number).gr_name)
        except KeyError:
            continue
    return names


def _missing(program: str, place: _Place, addresses: Sequence[str]) -> list[str]:
    """What is to be restored of one table so that the rules stand as they are to; nothing where they do."""
    lines = [line for line in _listed(program, place.table, place.chain) if line.startswith("-A ")]
    ours = [line for line in lines if line.endswith(f"-j {_CHAIN}")]
    steps = [*(f"{match} -j RETURN" for match in _FOR_EVERYONE), f"-j {place.verdict}"]
    filled = [line for line in _listed(program, place.table, _CHAIN) if line.startswith("-A ")]
    first = lines[: len(addresses)]
    is_first = first == ours and all(any(address in line for line in first) for address in addresses)
    if is_first and len(filled) == len(steps) and f"-j {place.verdict}" in filled[-1]:
        return []
    return [
        f"*{place.table}",
        f":{_CHAIN} - [0:0]",
        *(f"-A {_CHAIN} {step}" for step in steps),
        *(line.replace("-A ", "-D ", 1) for line in ours),
        *(f"-I {place.chain} 1 -d {address} {place.match} -j {_CHAIN}" for address in addresses),
        "COMMIT",
    ]


def _listed(program: str, table: str, chain: str) -> list[str]:
    """The rules of a chain; none where it is not there."""
    try:
        return _run([program, "-w", "10", "-t", table, "-S", chain]).splitlines()
    except GuardFailed:
        if chain != _CHAIN:
            raise
        return []


def _run(command: Sequence[str], given: str = "") -> str:
    """What a program of the packet filter prints. Raises GuardFailed."""
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, errors="replace"
        )
    except FileNotFoundError:
        raise _NotInstalled(
            f"{command[0]} is not installed: install iptables in the machine's image or by startup_script, {_ELSE}"
        ) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GuardFailed(f"{command[0]}: {error}") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        raise GuardFailed(f"{command[0]}: {last}; let its kernel have netfilter, {_ELSE}")
    return done.stdout
