"""Reconciles launched tasks: compares what they should be with what they are, and brings them there."""

from __future__ import annotations

from asyncpg import Connection

from tenax.errors import Stale
from tenax.lifecycle.reconcile import AskToLeave, Kill
from tenax.lifecycle.task import Conclude, LiveTask, RequestSlots, TaskAction, WithdrawRequest, reconcile_task
from tenax.master.allocations import events as allocation_events
from tenax.master.loops.loop import PassContext, each
from tenax.master.store.allocations import rows as allocations
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.tasks import rows as tasks


class ReconcileTasks:
    """Brings commands, generic tasks and the cluster's own tasks to their desired state."""

    name = "reconcile_tasks"
    kind = "task"

    async def make_pass(self, context: PassContext, woken: Woken) -> float | None:
        """Reconcile the tasks that were named, or all that live."""
        named = None if woken.full or not woken.ids else sorted(woken.ids)
        async with context.reading() as conn:
            due = [task.task_id for task in await tasks.unsettled(conn, named) if reconcile_task(task)]
        await each(due, lambda name: self._reconcile(context, name), loop=self.name, noun="task")
        return None

    async def _reconcile(self, context: PassContext, task_id: str) -> None:
        async with context.transaction() as conn:
            task = await tasks.lock(conn, task_id)
            for live in await tasks.unsettled(conn, [task_id]):
                for action in reconcile_task(live):
                    await self._act(conn, task, live, action)

    async def _act(self, conn: Connection, task: tasks.LaunchedTask, live: LiveTask, action: TaskAction) -> None:
        match action:
            case RequestSlots():
                await tasks.request_run(conn, task)
            case Conclude(_, verdict):
                await tasks.conclude(conn, [(task, verdict)])
            case WithdrawRequest(allocation_id, reason):
                if not await allocations.withdraw(conn, {allocation_id: reason}):
                    raise Stale(f"{allocation_id} was placed meanwhile")
                await tasks.announce(conn, live.task_id)
            case AskToLeave(allocation_id, reason, within_s):
                request = allocations.LeaveRequest(allocation_id, reason, within_s)
                await allocations.ask_to_leave(conn, [request], allocations.TASK_PREEMPTION_TIMEOUT_S)
            case Kill(allocation_id, _, desired):
                await allocation_events.end_members(conn, [allocation_id], desired)
