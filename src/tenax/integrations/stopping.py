"""Whether a framework's loop should stop, asked after its steps: often enough, and by all ranks after the same one."""

from __future__ import annotations

from tenax.core.hangs import beats
from tenax.core.preempt import NextLook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenax.core import Context


class StopQuestion:
    """For one loop. All ranks ask it after the same steps."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._look = NextLook()

    def asked_to_stop(self, step: int, *, always: bool = False) -> bool:
        """Whether the cluster asks to stop after so many steps; it is acknowledged then: save, and leave.

        Of one process the answer costs a microsecond. Several look each two seconds, or at once with ``always``.
        """
        beats.OWN.at(step)
        ranks = self._context.distributed
        if ranks.size > 1 and not always and not self._look.is_due(step):
            return False
        stops = self._context.preempt.should_preempt()
        if ranks.size > 1:
            self._look.was_at(step, lambda next_look: int(str(ranks.broadcast(next_look))))
        return stops
