-- name: groups
select trial_id, grp, month, run_id, next_ord, sealed_ord, newest_step, summary
from metric_groups where trial_id = any($1::bigint[]) and next_ord > 0 order by trial_id, grp;

-- name: tail
select run_id, first_ord, steps, times, bodies, batches
from metric_tail where month = $1 and trial_id = $2 and grp = $3 order by first_ord;

-- name: blocks
select run_id, first_ord, reports, first_step, last_step
from metric_blocks where month = $1 and trial_id = $2 and grp = $3 order by first_ord;

-- name: block
select run_id, first_ord, reports, steps, times, batches
from metric_blocks where month = $1 and trial_id = $2 and grp = $3 and first_ord = $4;

-- name: chunks
select metric, present, data from metric_chunks where month = $1 and trial_id = $2 and grp = $3 and first_ord = $4;

-- name: blocks_of_metric
select b.run_id, b.first_ord, b.reports, b.steps, b.times, c.present, c.data
from metric_blocks b
join metric_chunks c on c.month = b.month and c.trial_id = b.trial_id and c.grp = b.grp and c.first_ord = b.first_ord
where b.month = $1 and b.trial_id = $2 and b.grp = $3 and c.metric = $4
order by b.first_ord;

-- name: tails
-- Of one group of many trials.
select t.trial_id, t.run_id, t.first_ord, t.steps, t.times, t.bodies
from unnest($1::integer[], $2::bigint[]) w (month, trial)
join metric_tail t on t.month = w.month and t.trial_id = w.trial and t.grp = $3
order by t.trial_id, t.first_ord;

-- name: blocks_of_metrics
select b.trial_id, c.metric, b.run_id, b.first_ord, b.reports, b.steps, b.times, c.present, c.data
from unnest($1::integer[], $2::bigint[]) w (month, trial)
join metric_blocks b on b.month = w.month and b.trial_id = w.trial and b.grp = $3
join metric_chunks c on c.month = b.month and c.trial_id = b.trial_id and c.grp = b.grp and c.first_ord = b.first_ord
where c.metric = any($4::text[])
order by b.trial_id, b.first_ord;

-- name: unknown_trials
select u.id from unnest($1::bigint[]) u (id) where not exists (select 1 from trials t where t.id = u.id) order by u.id;
