-- name: sources
-- Left joins, though each has its row: what a filter and an order do not ask for is not joined at all.
from trials t
join experiments e on e.id = t.experiment_id
left join experiment_documents d on d.experiment_id = e.id
left join jobs j on j.job_id = e.job_id
left join projects p on p.id = e.project_id
left join workspaces w on w.id = p.workspace_id
left join users u on u.id = e.owner_id
left join experiment_tallies y on y.experiment_id = e.id
left join run_numbers n on n.trial_id = t.id
left join trial_telemetry m on m.trial_id = t.id
left join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED'
where e.state <> 'DELETING'

-- name: state
-- What a run is shown as: its own state once it has ended, else what it is on the way to, else what its attempt does.
case when t.state <> 'ACTIVE' then t.state
     when e.unmanaged then case when t.run_id > 0 then 'RUNNING' else 'QUEUED' end
     when t.wish = 'KILL' or e.state = 'STOPPING_KILLED' then 'STOPPING_KILLED'
     when t.wish = 'CANCEL' or e.state = 'STOPPING_CANCELED' then 'STOPPING_CANCELED'
     when t.wish = 'STOP' then 'STOPPING_COMPLETED'
     when a.state is null then case when e.state = 'PAUSED' then 'PAUSED' else 'QUEUED' end
     when a.state = 'PENDING' then 'QUEUED'
     when a.state = 'ASSIGNED' then 'STARTING'
     when a.state = 'TERMINATING' then 'RUNNING'
     else a.state end

-- name: owners
select t.id, t.experiment_id, e.project_id, e.owner_id, t.state as stored_state, t.archived,
       e.archived as experiment_archived, e.state as experiment_state, e.unmanaged, t.task_id,
       p.archived or w.archived as place_archived,
       coalesce(d.config -> 'searcher' ->> 'name', '') <> all($2::text[]) as multitrial
from trials t
join experiments e on e.id = t.experiment_id
join experiment_documents d on d.experiment_id = e.id
join projects p on p.id = e.project_id
join workspaces w on w.id = p.workspace_id
where t.id = any($1::bigint[]) and e.state <> 'DELETING'
order by e.id, t.id;

-- name: view_columns
t.id, t.experiment_id, t.archived or e.archived as archived, t.hparams, t.external_id, t.created_at, t.ended_at,
       extract(epoch from coalesce(t.ended_at, now()) - t.created_at)::float8 as age_s,
       p.key || '-' || n.local_id as local_id,
       e.project_id, p.name as project_name, p.workspace_id, w.name as workspace_name, e.owner_id,
       p.archived or w.archived as parent_archived, e.parent_id, e.unmanaged, e.external_id as external_experiment_id,
       d.name, d.description, d.labels, j.pool,
       coalesce(d.config -> 'searcher' ->> 'name', '') as searcher_type,
       coalesce(d.config -> 'searcher' ->> 'metric', '') as searcher_metric,
       d.config -> 'integrations' -> 'pachyderm' as pachyderm,
       m.best_metric, r.metadata,
       ck.checkpoints, ck.checkpoint_bytes,
       (select l.policy from log_matches l where l.trial_id = t.id order by l.matched_at, l.policy limit 1) as log_policy

-- name: view_sources
from trials t
join experiments e on e.id = t.experiment_id
join experiment_documents d on d.experiment_id = e.id
join jobs j on j.job_id = e.job_id
join projects p on p.id = e.project_id
join workspaces w on w.id = p.workspace_id
left join run_numbers n on n.trial_id = t.id
left join trial_telemetry m on m.trial_id = t.id
left join run_metadata r on r.trial_id = t.id
left join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED'
cross join lateral (
    select count(*)::int as checkpoints, coalesce(sum(c.size_bytes), 0)::bigint as checkpoint_bytes
    from checkpoints c where c.trial_id = t.id and c.state in ('COMPLETED', 'PARTIALLY_DELETED')) ck
where t.id = any($1::bigint[]);

-- name: progress
-- Of experiments, from 0 to 1: the share of the trials that they may make which are over, with what live ones told.
select e.id as experiment_id,
       case when e.state = 'COMPLETED' then 1
            else least(1, (y.trials_ended + coalesce(told.progress, 0)) / greatest(y.expected_trials, y.trials, 1))
       end::float8 as progress
from experiments e
join experiment_tallies y on y.experiment_id = e.id
left join lateral (
    select sum(m.progress) as progress
    from trials t join trial_telemetry m on m.trial_id = t.id
    where t.experiment_id = e.id and t.state = 'ACTIVE') told on e.ended_at is null
where e.id = any($1::bigint[]);
