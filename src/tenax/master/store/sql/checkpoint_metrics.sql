-- name: tail
-- Before the blocks: what is packed meanwhile is read twice then, and never missed.
select t.trial_id, t.grp, t.run_id, t.first_ord, t.steps, t.times, t.bodies, null::bytea as batches
from unnest($1::integer[], $2::bigint[], $3::text[]) w (month, trial, grp)
join metric_tail t on t.month = w.month and t.trial_id = w.trial and t.grp = w.grp
order by t.trial_id, t.grp, t.first_ord;

-- name: blocks
-- Those that may hold a report of one of the steps; $4: steps of each group.
select distinct on (b.trial_id, b.grp, b.first_ord)
       b.month, b.trial_id, b.grp, b.run_id, b.first_ord, b.reports, b.steps, b.times, null::bytea as batches
from unnest($1::integer[], $2::bigint[], $3::text[], $4::bigint[]) w (month, trial, grp, step)
join metric_blocks b on b.month = w.month and b.trial_id = w.trial and b.grp = w.grp
                    and w.step between b.first_step and b.last_step
order by b.trial_id, b.grp, b.first_ord;

-- name: chunks
select c.trial_id, c.grp, c.first_ord, c.metric, c.present, c.data
from unnest($1::integer[], $2::bigint[], $3::text[], $4::bigint[]) w (month, trial, grp, first_ord)
join metric_chunks c on c.month = w.month and c.trial_id = w.trial and c.grp = w.grp and c.first_ord = w.first_ord
order by c.trial_id, c.grp, c.first_ord;
