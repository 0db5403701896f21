-- name: tail
select t.trial_id, t.run_id, t.first_ord, t.steps, t.times, t.bodies, null::bytea as batches
from unnest($1::integer[], $2::bigint[]) w (month, trial)
join metric_tail t on t.month = w.month and t.trial_id = w.trial and t.grp = 'validation'
order by t.trial_id, t.first_ord;

-- name: blocks
select b.trial_id, b.run_id, b.first_ord, b.reports, b.steps, b.times, null::bytea as batches
from unnest($1::integer[], $2::bigint[]) w (month, trial)
join metric_blocks b on b.month = w.month and b.trial_id = w.trial and b.grp = 'validation'
order by b.trial_id, b.first_ord;

-- name: chunks
select c.trial_id, c.first_ord, c.metric, c.present, c.data
from unnest($1::integer[], $2::bigint[]) w (month, trial)
join metric_chunks c on c.month = w.month and c.trial_id = w.trial and c.grp = 'validation'
order by c.trial_id, c.first_ord;
