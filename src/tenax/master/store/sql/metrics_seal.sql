-- name: lock
select month, sealed_ord, next_ord from metric_groups where trial_id = $1 and grp = $2 for update;

-- name: tail
select month, trial_id, grp, run_id, first_ord, steps, times, bodies, batches
from metric_tail where month = $1 and trial_id = $2 and grp = $3 order by first_ord;

-- name: drop_tail
delete from metric_tail where month = $1 and trial_id = $2 and grp = $3;

-- name: sealed
update metric_groups set sealed_ord = $3 where trial_id = $1 and grp = $2;

-- name: finished
select g.trial_id, g.grp from metric_groups g join trials t on t.id = g.trial_id
where g.sealed_ord < g.next_ord and t.ended_at is not null
order by g.trial_id, g.grp
limit $1;
