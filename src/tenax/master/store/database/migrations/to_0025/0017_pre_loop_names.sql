-- Loops are named as their files are. The lease of each goes on under the new name, with its holder, epoch and time, so
-- that a master of this release waits for whoever has it.
-- A master of the release before may run beside this one. It loses these loops (the epoch is another), and does not get
-- them again: the old names are held by nobody, for good.
with names (old, new) as (
    values ('tending', 'reconcile_experiments'),
           ('launching', 'reconcile_tasks'),
           ('rescuing', 'timeouts'),
           ('deleting', 'deletion'),
           ('collecting', 'checkpoint_gc'),
           ('retaining', 'retention'),
           ('telling', 'webhook_delivery')),
held as (
    select n.old, n.new, l.epoch, l.holder, l.expires_at
    from leases l join names n on n.old = l.loop
    order by l.loop
    for update of l),
carried as (
    insert into leases (loop, epoch, holder, expires_at) select new, epoch, holder, expires_at from held)
update leases l
set epoch = held.epoch + 1, holder = 'renamed to ' || held.new, expires_at = 'infinity'
from held where l.loop = held.old;
