"""What goes on while the servers of this machine's cluster are down: tasks, and machines that are rented for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, List

from tenax.display.plural import counted

if TYPE_CHECKING:
    from tenax.client.connection.session import Session


def running_tasks(session: Session) -> List[str]:
    """What to say of the tasks of this machine; they are ended by ``--kill-tasks`` alone. Raises TenaxError."""
    from tenax.client.agents import list_agents

    running = sum(agent.container_count for agent in list_agents(session) if agent.connected)
    if not running:
        return []
    return [
        f"{running} task{'s keep' if running > 1 else ' keeps'} running without the cluster and will be picked up "
        "again by the next tenax up; to end them as well: tenax down --kill-tasks."
    ]


def rented_machines(session: Session) -> List[str]:
    """What to say of machines that cost money, and that nobody ends meanwhile. Raises TenaxError."""
    from tenax.client.pools import list_machines

    names = [machine.provider_id or machine.id for machine in list_machines(session)]
    if not names:
        return []
    return [
        f"{counted(len(names), 'machine')} {'is' if len(names) == 1 else 'are'} still rented ({', '.join(names)}), and "
        "nobody ends what is idle while the cluster is down: tenax up does, or end them at their provider."
    ]
