-- name: of_trials
-- The highest step of any visible report is kept per group; the profiler has none.
select t.trial_id, p.progress, coalesce(p.runner_state, '') as runner_state,
       coalesce((select max(g.newest_step) from metric_groups g where g.trial_id = t.trial_id and g.newest_step >= 0
                     and g.grp not in ('gpu', 'cpu', 'memory', 'disk', 'network')), 0)
           as total_batches,
       p.latest_validation, p.best_validation, p.best_metric, p.reported_at
from unnest($1::bigint[]) t (trial_id)
left join trial_telemetry p on p.trial_id = t.trial_id;

-- name: best_smallest
-- What is not finite ranks worst in both directions.
select p.trial_id, p.best_metric from trial_telemetry p join trials t on t.id = p.trial_id
where t.experiment_id = $1 and p.best_metric is not null
order by p.best_metric in ('NaN', 'Infinity', '-Infinity'), p.best_metric, p.trial_id limit 1;

-- name: best_largest
select p.trial_id, p.best_metric from trial_telemetry p join trials t on t.id = p.trial_id
where t.experiment_id = $1 and p.best_metric is not null
order by p.best_metric in ('NaN', 'Infinity', '-Infinity'), p.best_metric desc, p.trial_id limit 1;

-- name: set_progress
insert into trial_telemetry (trial_id, progress) select id, $3 from trials where id = $1 and run_id = $2
on conflict (trial_id) do update set progress = excluded.progress, reported_at = now();

-- name: set_runner_state
insert into trial_telemetry (trial_id, runner_state) select id, $3 from trials where id = $1 and run_id = $2
on conflict (trial_id) do update set runner_state = excluded.runner_state, reported_at = now();

-- name: set_invalid_hp
update trials set invalid_hp = true, version = version + 1
where id = $1 and run_id = $2 and state = 'ACTIVE' and not invalid_hp
returning id;

-- name: set_fatal
update trials set fatal = $3, version = version + 1
where id = $1 and run_id = $2 and state = 'ACTIVE' and fatal is null
returning id;
