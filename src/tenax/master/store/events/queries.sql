-- What the live stream says of something that changed: some columns that pages show, each read once for all followers.

-- name: experiments
select e.id, e.project_id, e.owner_id, {{experiments.shown_state}} as state, e.archived, d.name, d.description,
       d.labels, {{experiments.notes_digest}} as notes_digest, pr.progress, y.trials,
       y.best_trial_id, y.best_metric, y.checkpoints, e.ended_at, e.reason, {{experiments.first_failure}} as first_failure,
       {{experiments.wait_reason}} as wait_reason
from experiments e
join experiment_documents d on d.experiment_id = e.id
join experiment_tallies y on y.experiment_id = e.id
join experiment_progress pr on pr.experiment_id = e.id
where e.id = any($1::bigint[]);

-- name: trials
-- Those that are named, and the first of each experiment's that go on.
select t.id, t.experiment_id, t.state = 'ACTIVE' as live, {{trials.shown_state}} as state, t.run_id, t.restarts, m.progress, m.best_metric,
       {{trials.total_batches}} as total_batches, t.ended_at
from trials t
join experiments e on e.id = t.experiment_id
left join trial_telemetry m on m.trial_id = t.id
left join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED' and t.state = 'ACTIVE'
where t.id = any($1::bigint[] || array(
    select x.id from unnest($2::bigint[]) as n (experiment_id)
    cross join lateral (
        select o.id from trials o where o.experiment_id = n.experiment_id and o.state = 'ACTIVE' order by o.id limit $3) x));

-- name: places
-- What wake-ups name a trial by.
select t.id, {{trials.log_of}} as task_id, t.experiment_id from trials t where t.id = any($1::bigint[]);

-- name: known_experiments
select id from experiments where id = any($1::bigint[]);

-- name: known_projects
select id from projects where id = any($1::bigint[]);

-- name: known_tasks
select task_id from tasks where task_id = any($1::text[]);

-- name: tasks
select l.task_id, t.kind, j.owner_id, l.workspace_id,
       case when l.state <> 'ACTIVE' then l.state else coalesce((
           select case when a.waiting_since is not null and a.state = 'RUNNING' then 'WAITING'
                       when a.state = 'PENDING' then 'QUEUED' else a.state end
           from allocations a where a.task_id = l.task_id and a.state <> 'TERMINATED' limit 1), 'QUEUED') end as state
from launched_tasks l
join tasks t on t.task_id = l.task_id
join jobs j on j.job_id = t.job_id
where l.task_id = any($1::text[]);

-- name: output_ends
select task_id, next_line from log_tasks where task_id = any($1::text[]);

-- name: newest_steps
select trial_id, grp, newest_step from metric_groups where trial_id = any($1::bigint[]);

-- name: agents
select a.agent_id, a.pool, a.state, coalesce(p.connected, false) as connected,
       (select count(*)::int from agent_slots s where s.agent_id = a.agent_id and s.present) as slots,
       (select count(*)::int from slots_in_use u where u.agent_id = a.agent_id) as slots_in_use
from agents a
left join agent_presence p on p.agent_id = a.agent_id
where a.agent_id = any($1::text[]);

-- name: announce
select pg_notify('tenax', $1);
