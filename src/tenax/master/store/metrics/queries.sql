-- name: targets
select t.id, t.experiment_id, t.request_id, t.task_id, d.config -> 'searcher' as searcher, e.unmanaged,
       (extract(year from t.created_at) * 100 + extract(month from t.created_at))::integer as month
from trials t join experiments e on e.id = t.experiment_id join experiment_documents d on d.experiment_id = t.experiment_id
where t.id = any($1::bigint[]);

-- name: cuts
select trial_id, run_id, kind, step from metric_cuts where trial_id = any($1::bigint[]);

-- name: heads
-- Groups that have reports, with their trials as they are now. Locked in one order everywhere.
select g.trial_id, g.grp, g.run_id, g.last_step, g.next_ord, g.newest_step, g.summary,
       t.run_id as current_run, t.state = 'ACTIVE' as active, p.best_metric,
       (p.latest_validation ->> 'step')::bigint as latest_step,
       (extract(epoch from now()) * 1000000)::bigint as now_us
from metric_groups g
join unnest($1::bigint[], $2::text[]) u (trial_id, grp) on g.trial_id = u.trial_id and g.grp = u.grp
join trials t on t.id = g.trial_id
left join trial_telemetry p on p.trial_id = t.id
order by g.trial_id, g.grp
for update of g;

-- name: create_heads
-- So that there is a row to lock; two that begin a group at once share it.
insert into metric_groups (trial_id, grp, month, run_id, last_step, next_ord, newest_step, summary)
select u.trial_id, u.grp, u.month, 0, -1, 0, -1, '{}'
from unnest($1::bigint[], $2::text[], $3::integer[]) u (trial_id, grp, month)
order by u.trial_id, u.grp
on conflict do nothing;

-- name: streams
select s.container_id, s.stream, s.acked
from spool_streams s join unnest($1::text[], $2::text[]) u (container_id, stream)
  on s.container_id = u.container_id and s.stream = u.stream
order by s.container_id, s.stream
for update of s;

-- name: create_stream
insert into spool_streams (container_id, stream, allocation_id, acked) values ($1, $2, $3, 0) on conflict do nothing;

-- name: add_month
select tenax_add_month($1, $2);

-- name: append
insert into metric_tail (month, trial_id, grp, first_ord, run_id, steps, times, bodies, batches)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: save
-- Where groups and spools end now, in one round trip.
with streams as (
    update spool_streams s set acked = u.acked
    from unnest($8::text[], $9::text[], $10::bigint[]) u (container_id, stream, acked)
    where s.container_id = u.container_id and s.stream = u.stream
)
update metric_groups g
set run_id = u.run_id, last_step = u.last_step, next_ord = u.next_ord, newest_step = u.newest_step,
    summary = u.summary, reported_at = now()
from unnest($1::bigint[], $2::text[], $3::integer[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[])
    u (trial_id, grp, run_id, last_step, next_ord, newest_step, summary)
where g.trial_id = u.trial_id and g.grp = u.grp;

-- name: save_refusals
insert into spool_refusals (container_id, stream, n, message, fatal)
select * from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::boolean[])
on conflict do nothing;

-- name: save_cuts
insert into metric_cuts (trial_id, run_id, kind, step)
select * from unnest($1::bigint[], $2::integer[], $3::text[], $4::bigint[])
on conflict (trial_id, run_id, kind) do update set step = excluded.step where excluded.step < metric_cuts.step;

-- name: save_validations
-- What is not told anew stays; of validations at the same step the first counts.
with seen as (
    insert into validations (trial_id, step, metric)
    select $1, u.step, u.metric from unnest($5::bigint[], $6::float8[]) u (step, metric)
    on conflict (trial_id, step) do nothing)
insert into trial_telemetry as p (trial_id, latest_validation, best_validation, best_metric) values ($1, $2, $3, $4)
on conflict (trial_id) do update
set latest_validation = coalesce(excluded.latest_validation, p.latest_validation),
    best_validation = coalesce(excluded.best_validation, p.best_validation),
    best_metric = case when excluded.best_validation is null then p.best_metric else excluded.best_metric end,
    reported_at = now();

-- name: put_facts
insert into search_inbox (experiment_id, trial_id, kind, at_key, fact)
select u.experiment_id, u.trial_id, 'validation', u.step, u.fact
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::jsonb[]) u (experiment_id, trial_id, step, fact)
on conflict (trial_id, kind, at_key) do nothing
returning experiment_id;

-- name: stored_tail
select m.trial_id, m.grp, m.run_id, m.steps, m.bodies, m.batches
from metric_tail m
where m.month = $1 and m.trial_id = $2 and m.grp = $3 and m.run_id = $4 and m.steps && $5::bigint[];

-- name: stored_blocks
select b.month, b.first_ord, b.reports, b.steps, b.batches
from metric_blocks b
where b.month = $1 and b.trial_id = $2 and b.grp = $3 and b.run_id = $4 and b.first_step <= $6 and b.last_step >= $5;

-- name: chunks_of
select metric, present, data from metric_chunks where month = $1 and trial_id = $2 and grp = $3 and first_ord = $4;

-- name: delete_groups
delete from metric_groups where trial_id = any($1::bigint[]);

-- name: delete_cuts
delete from metric_cuts where trial_id = any($1::bigint[]);

-- name: delete_tail
-- Of their months alone, as below.
delete from metric_tail m using metric_groups g
where g.trial_id = any($1::bigint[]) and (m.month, m.trial_id, m.grp) = (g.month, g.trial_id, g.grp);

-- name: delete_blocks
delete from metric_blocks m using metric_groups g
where g.trial_id = any($1::bigint[]) and (m.month, m.trial_id, m.grp) = (g.month, g.trial_id, g.grp);

-- name: delete_chunks
delete from metric_chunks m using metric_groups g
where g.trial_id = any($1::bigint[]) and (m.month, m.trial_id, m.grp) = (g.month, g.trial_id, g.grp);

-- name: kept_from
-- Where the clean-up of metrics stands.
select ended_at, trial_id from metric_retention;

-- name: expired
-- Trials that ended $1 days ago and after the place ($2, $3), the ones that ended first; $4: how many.
select id, ended_at from trials
where ended_at <= now() - make_interval(days => $1) and (ended_at, id) > ($2::timestamptz, $3::bigint)
order by ended_at, id
limit $4;

-- name: hold_groups
select 1 from metric_groups where trial_id = any($1::bigint[]) order by trial_id, grp for update;

-- name: packed
-- Nothing of these is left to be packed.
update metric_groups set sealed_ord = next_ord where trial_id = any($1::bigint[]) and sealed_ord < next_ord;

-- name: keep_from
insert into metric_retention (ended_at, trial_id) values ($1, $2)
on conflict (only_row) do update set ended_at = excluded.ended_at, trial_id = excluded.trial_id;

-- name: drop_metric_months
select tenax_drop_months(array['metric_tail', 'metric_blocks', 'metric_chunks'], $1, null);

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

-- name: groups
select trial_id, grp, month, run_id, next_ord, sealed_ord, newest_step, summary
from metric_groups where trial_id = any($1::bigint[]) and next_ord > 0 order by trial_id, grp;

-- name: series_tail
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
select b.run_id, b.first_ord, b.reports, b.last_step, b.steps, b.times, c.present, c.data
from metric_blocks b
join metric_chunks c on c.month = b.month and c.trial_id = b.trial_id and c.grp = b.grp and c.first_ord = b.first_ord
where b.month = $1 and b.trial_id = $2 and b.grp = $3 and c.metric = $4
  and ($5::float8 is null or b.last_step >= $5) and ($6::float8 is null or b.first_step <= $6)
order by b.first_ord;

-- name: newest_block_of_metric
select b.run_id, b.first_ord, b.reports, b.last_step, b.steps, b.times, c.present, c.data
from metric_blocks b
join metric_chunks c on c.month = b.month and c.trial_id = b.trial_id and c.grp = b.grp and c.first_ord = b.first_ord
where b.month = $1 and b.trial_id = $2 and b.grp = $3 and c.metric = $4
order by b.first_ord desc limit 1;

-- name: newest_block
select run_id, first_ord, reports, steps, times, batches
from metric_blocks where month = $1 and trial_id = $2 and grp = $3 order by first_ord desc limit 1;

-- name: tails
-- Of one group of many trials.
select t.trial_id, t.run_id, t.first_ord, t.steps, t.times, t.bodies
from unnest($1::integer[], $2::bigint[]) w (month, trial)
join metric_tail t on t.month = w.month and t.trial_id = w.trial and t.grp = $3
order by t.trial_id, t.first_ord;

-- name: blocks_of_metrics
select b.trial_id, c.metric, b.run_id, b.first_ord, b.reports, b.last_step, b.steps, b.times, c.present, c.data
from unnest($1::integer[], $2::bigint[]) w (month, trial)
join metric_blocks b on b.month = w.month and b.trial_id = w.trial and b.grp = $3
join metric_chunks c on c.month = b.month and c.trial_id = b.trial_id and c.grp = b.grp and c.first_ord = b.first_ord
where c.metric = any($4::text[])
  and ($5::float8 is null or b.last_step >= $5) and ($6::float8 is null or b.first_step <= $6)
order by b.trial_id, b.first_ord;

-- name: unknown_trials
select u.id from unnest($1::bigint[]) u (id) where not exists (select 1 from trials t where t.id = u.id) order by u.id;

-- name: steps_blocks
select run_id, steps from metric_blocks where month = $1 and trial_id = $2 and grp = $3 order by first_ord;

-- name: steps_tail
select run_id, steps from metric_tail where month = $1 and trial_id = $2 and grp = $3 order by first_ord;

-- name: of_experiment
select g.grp, g.summary from metric_groups g join trials t on t.id = g.trial_id
where t.experiment_id = $1 and g.next_ord > 0;

-- name: lock_groups
select grp from metric_groups where trial_id = $1 order by grp for update;

-- name: save_group
update metric_groups set newest_step = $3, summary = $4 where trial_id = $1 and grp = $2;

-- name: summary_save_validations
insert into trial_telemetry (trial_id, latest_validation, best_validation, best_metric) values ($1, $2, $3, $4)
on conflict (trial_id) do update
set latest_validation = excluded.latest_validation, best_validation = excluded.best_validation,
    best_metric = excluded.best_metric;

-- name: searched
-- Which metric the searches of these experiments look at, and whether any of them goes on.
select d.config -> 'searcher' ->> 'metric' as metric, e.ended_at is null as going_on
from experiments e join experiment_documents d on d.experiment_id = e.id
where e.id = any($1::bigint[]);

-- name: validations
-- Oldest first.
select v.trial_id, v.reported_at as at, v.metric
from trials t join validations v on v.trial_id = t.id
where t.experiment_id = $1
order by v.reported_at, v.trial_id, v.step;

-- name: best_trials
-- Those with the best validations; those without one come last.
select t.id, t.hparams
from trials t
join experiment_tallies y on y.experiment_id = t.experiment_id
left join trial_telemetry m on m.trial_id = t.id
where t.experiment_id = $1
order by m.best_metric is null, tenax_rank(m.best_metric, y.smaller_is_better), t.id
limit $2;
