-- name: of_trials
select trial_id, progress, runner_state, total_batches, latest_validation, best_validation, best_metric, reported_at
from trial_telemetry where trial_id = any($1::bigint[]);

-- name: best_smallest
-- PostgreSQL sorts NaN above every number: last here, and last by hand below.
select p.trial_id, p.best_metric from trial_telemetry p join trials t on t.id = p.trial_id
where t.experiment_id = $1 and p.best_metric is not null
order by p.best_metric, p.trial_id limit 1;

-- name: best_largest
select p.trial_id, p.best_metric from trial_telemetry p join trials t on t.id = p.trial_id
where t.experiment_id = $1 and p.best_metric is not null
order by p.best_metric = 'NaN', p.best_metric desc, p.trial_id limit 1;

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
