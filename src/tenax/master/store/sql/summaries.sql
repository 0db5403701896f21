-- name: of_experiment
select g.grp, g.summary from metric_groups g join trials t on t.id = g.trial_id
where t.experiment_id = $1 and g.next_ord > 0;

-- name: lock_groups
select grp from metric_groups where trial_id = $1 order by grp for update;

-- name: save_group
update metric_groups set newest_step = $3, summary = $4 where trial_id = $1 and grp = $2;

-- name: save_validations
insert into trial_telemetry (trial_id, latest_validation, best_validation, best_metric) values ($1, $2, $3, $4)
on conflict (trial_id) do update
set latest_validation = excluded.latest_validation, best_validation = excluded.best_validation,
    best_metric = excluded.best_metric;
