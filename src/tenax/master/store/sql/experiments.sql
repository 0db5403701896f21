-- name: get
select id, state, version, job_id, owner_id, unmanaged from experiments where id = $1;

-- name: lock
-- Keys never change, so rows that refer to it (facts, metrics) may be inserted meanwhile. A full lock would be waited for
-- by their transactions, which hold such a share of a trial that is locked next.
select id, state, version, job_id, owner_id, unmanaged from experiments where id = $1 for no key update;

-- name: set_state
update experiments
set state = $3, reason = coalesce($4, reason), version = version + 1,
    started_at = case when $3 = 'ACTIVE' then coalesce(started_at, now()) else started_at end,
    ended_at = case when $3 in ('COMPLETED', 'CANCELED', 'ERROR') then coalesce(ended_at, now())
                    when $3 in ('DELETING', 'DELETE_FAILED') then ended_at end
where id = $1 and version = $2
returning version;

-- name: end_job
update jobs set ended_at = now(), version = version + 1 where job_id = $1 and ended_at is null;

-- name: live_ids
select id from experiments where ended_at is null and not unmanaged order by id;

-- name: plan
-- What the search and the placement of an experiment need of its documents.
select d.config, d.seed, d.context_hash, j.pool, j.priority
from experiment_documents d
join experiments e on e.id = d.experiment_id
join jobs j on j.job_id = e.job_id
where d.experiment_id = $1;

-- name: end_unmanaged_trials
update trials set state = 'CANCELED', reason = $2, ended_at = now(), version = version + 1
where experiment_id = $1 and state = 'ACTIVE';

-- name: end_unmanaged_tasks
update tasks set ended_at = now()
where ended_at is null and trial_id in (select id from trials where experiment_id = $1 and state = 'CANCELED')
returning task_id;
