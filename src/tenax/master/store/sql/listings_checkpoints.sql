-- name: columns
select c.uuid, c.task_id, c.allocation_id, c.trial_id, c.storage_id, c.state, c.superseded, c.steps_completed, c.metadata,
       c.resources, c.size_bytes, c.reported_at, t.experiment_id, coalesce(e.owner_id, j.owner_id) as owner_id, t.hparams, d.config,
       s.config as storage, v.metric, v.metrics, r.reason as going, r.failure as going_failure

-- name: sources
from checkpoints c
join tasks k on k.task_id = c.task_id
join jobs j on j.job_id = k.job_id
left join trials t on t.id = c.trial_id
left join experiments e on e.id = t.experiment_id
left join experiment_documents d on d.experiment_id = e.id
left join storage_backends s on s.id = c.storage_id
left join removals r on r.checkpoint = c.uuid
left join trial_telemetry m on m.trial_id = t.id
left join search_inbox i on i.trial_id = t.id and i.kind = 'validation' and i.at_key = c.steps_completed
cross join lateral (
    -- The searcher's metric at its step: as the newest run reported it where that is known, else as the search saw it.
    select case when (m.best_validation ->> 'step')::bigint = c.steps_completed then m.best_metric
                else (i.fact ->> 'metric')::float8 end as metric,
           case when (m.best_validation ->> 'step')::bigint = c.steps_completed then m.best_validation -> 'metrics'
                when (m.latest_validation ->> 'step')::bigint = c.steps_completed then m.latest_validation -> 'metrics'
                when i.fact is not null
                then jsonb_build_object(d.config -> 'searcher' ->> 'metric', i.fact -> 'metric') end as metrics) v

-- name: matching
where ($1::bigint is null or t.experiment_id = $1)
  and ($2::bigint is null or c.trial_id = $2)
  and ($3::text[] is null or c.state = any($3))
  and ($4::text[] is null or c.uuid = any($4))

-- name: needed_by
-- A live trial that may start from the checkpoint.
select min(id) from (
    select t.id
    from trials t join checkpoints c on c.trial_id = t.id
    where c.uuid = $1 and t.state = 'ACTIVE' and c.state = 'COMPLETED' and not c.superseded
      and not exists (
        select 1 from checkpoints o
        where o.trial_id = t.id and o.state = 'COMPLETED' and not o.superseded and not o.doomed and o.uuid <> c.uuid
          and (o.steps_completed, o.reported_at) > (c.steps_completed, c.reported_at))
    union all
    select t.id from trials t where t.warm_start_checkpoint = $1 and t.state = 'ACTIVE') n (id);
