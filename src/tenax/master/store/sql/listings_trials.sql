-- name: views
select t.id, t.experiment_id, t.task_id, t.state, t.reason, t.wish, t.hparams, t.restarts, t.run_id, t.created_at, t.ended_at,
       t.warm_start_checkpoint, e.state as experiment_state, e.owner_id, e.unmanaged,
       e.config_metric, e.smaller_is_better,
       coalesce((select max(g.newest_step) from metric_groups g where g.trial_id = t.id and g.newest_step >= 0
                     and g.grp not in ('gpu', 'cpu', 'memory', 'disk', 'network')), 0) as total_batches,
       m.progress, coalesce(m.runner_state, '') as runner_state,
       m.latest_validation, m.best_validation, m.best_metric,
       ck.checkpoints, ck.checkpoint_bytes, held.seconds as held_s,
       doing.state as attempt_state, doing.reason as wait_reason,
       best.uuid as best_uuid, best.state as best_state, best.reported_at as best_at, best.steps_completed as best_steps,
       best.resources as best_resources, best.metadata as best_metadata,
       coalesce(t.log_retention_days, e.log_retention_days) as log_retention_days, noted.metadata,
       (select l.policy from log_matches l where l.trial_id = t.id order by l.matched_at, l.policy limit 1) as log_policy
from trials t
join (select x.id, x.state, x.owner_id, x.unmanaged, d.config -> 'searcher' ->> 'metric' as config_metric,
             coalesce(d.log_retention_days, (d.config -> 'retention_policy' ->> 'log_retention_days')::smallint)
                 as log_retention_days,
             coalesce(d.config -> 'searcher' ->> 'smaller_is_better', 'true') = 'true' as smaller_is_better
      from experiments x join experiment_documents d on d.experiment_id = x.id) e on e.id = t.experiment_id
left join trial_telemetry m on m.trial_id = t.id
left join run_metadata noted on noted.trial_id = t.id
cross join lateral (
    select count(*)::int as checkpoints, coalesce(sum(c.size_bytes), 0)::bigint as checkpoint_bytes
    from checkpoints c where c.trial_id = t.id and c.state in ('COMPLETED', 'PARTIALLY_DELETED')) ck
cross join lateral (
    select coalesce(sum(extract(epoch from coalesce(a.ended_at, now()) - a.assigned_at)), 0)::float8 as seconds
    from allocations a where a.task_id = t.task_id and a.assigned_at is not null) held
left join lateral (
    select a.state, q.reason
    from allocations a left join allocation_waits q on q.allocation_id = a.allocation_id and a.state = 'PENDING'
    where a.task_id = t.task_id and a.state <> 'TERMINATED') doing on t.state = 'ACTIVE'
left join lateral (
    -- The checkpoint at the best validation, or else the one whose validation is the best.
    select c.*
    from checkpoints c
    left join search_inbox i on i.trial_id = t.id and i.kind = 'validation' and i.at_key = c.steps_completed
    cross join lateral (select case when c.steps_completed = (m.best_validation ->> 'step')::bigint
                                    then m.best_metric else (i.fact ->> 'metric')::float8 end as metric) v
    where c.trial_id = t.id and c.state = 'COMPLETED' and not c.superseded and v.metric is not null
    order by v.metric in ('NaN', 'Infinity', '-Infinity'),
             case when e.smaller_is_better then v.metric else - v.metric end, c.steps_completed desc
    limit 1) best on true
where t.id = any($1::bigint[]);

-- name: of_experiment
from trials t
join experiments e on e.id = t.experiment_id
left join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED'
where t.experiment_id = $1

-- name: owner
select e.owner_id, e.id as experiment_id from trials t join experiments e on e.id = t.experiment_id where t.id = $1;

-- name: has_ended
select state <> 'ACTIVE' from trials where id = $1;
