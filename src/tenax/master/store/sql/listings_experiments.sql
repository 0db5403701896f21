-- name: views
-- In two parts, each planned for itself: one join of all these tables takes longer to plan than to make.
with page as materialized (
    select e.id, e.job_id, e.owner_id, e.project_id, e.parent_id, e.state, e.reason, e.archived, e.unmanaged, e.external_id,
           e.created_at, e.started_at, e.ended_at, d.name, d.description, d.notes, d.labels, d.original_config,
           d.config::text as config_text, d.context_hash,
           y.trials, y.trials_ended, y.expected_trials, y.checkpoints, y.checkpoint_bytes, y.best_trial_id, y.best_metric, j.pool
    from experiments e
    join experiment_documents d on d.experiment_id = e.id
    join experiment_tallies y on y.experiment_id = e.id
    join jobs j on j.job_id = e.job_id
    where e.id = any($1::bigint[]))
select e.id, e.job_id, e.owner_id, u.username, u.display_name, e.project_id, p.name as project_name,
       coalesce(p.owner_id, 0) as project_owner_id, p.workspace_id, w.name as workspace_name,
       e.parent_id, coalesce((select o.archived from experiments o where o.id = e.parent_id), false) as parent_archived,
       e.state, e.reason, e.archived, e.unmanaged, e.external_id, e.created_at, e.started_at, e.ended_at,
       extract(epoch from coalesce(e.ended_at, now()) - e.created_at)::float8 as age_s,
       e.name, e.description, e.notes, e.labels, e.original_config, e.config_text, e.pool,
       coalesce((select x.size_bytes from contexts x where x.hash = e.context_hash), 0) as code_bytes,
       e.trials, e.trials_ended, e.expected_trials, e.checkpoints, e.checkpoint_bytes, e.best_trial_id, e.best_metric,
       case when e.ended_at is null then coalesce((
           select sum(m.progress) from trials t join trial_telemetry m on m.trial_id = t.id
           where t.experiment_id = e.id and t.state = 'ACTIVE'), 0) else 0 end::float8 as progress_told,
       case when e.state = 'ERROR' then (
           select t.reason from trials t where t.experiment_id = e.id and t.state = 'ERROR' order by t.id limit 1) end as first_failure,
       doing.shown_state, doing.wait_reason,
       case when e.unmanaged then (select t.external_id from trials t where t.id = e.best_trial_id) end as external_trial_id
from page e
join users u on u.id = e.owner_id
join projects p on p.id = e.project_id
join workspaces w on w.id = p.workspace_id
left join lateral (
    select case when e.unmanaged then 'RUNNING' else case max(case a.state when 'PENDING' then 1 when 'PULLING' then 2 when 'ASSIGNED' then 3 when 'STARTING' then 3 else 4 end)
                    when 4 then 'RUNNING' when 3 then 'STARTING' when 2 then 'PULLING' else 'QUEUED' end end as shown_state,
           (array_agg(q.reason order by a.requested_at, a.allocation_id) filter (where q.reason is not null))[1] as wait_reason
    from trials t
    join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED'
    left join allocation_waits q on q.allocation_id = a.allocation_id and a.state = 'PENDING'
    where t.experiment_id = e.id and t.state = 'ACTIVE') doing on e.state = 'ACTIVE';

-- name: advances
select e.id, e.state, y.trials, y.trials_ended, y.expected_trials,
       case when y.expected_trials is null then d.config::text else '{}' end as config_text,
       case when e.ended_at is null then coalesce((
           select sum(m.progress) from trials t join trial_telemetry m on m.trial_id = t.id
           where t.experiment_id = e.id and t.state = 'ACTIVE'), 0) else 0 end::float8 as progress_told
from experiments e
join experiment_documents d on d.experiment_id = e.id
join experiment_tallies y on y.experiment_id = e.id
where e.id = any($1::bigint[]);

-- name: trial_ids
select id from trials where experiment_id = $1 order by id;

-- name: job_standing
-- Jobs of the pool that wait and come earlier, and whether this one holds any slots.
with mine as (
    select j.* from jobs j join experiments e on e.job_id = j.job_id where e.id = $1)
select (select count(*)::int
        from jobs o join experiments e on e.job_id = o.job_id
        where o.pool = mine.pool and o.ended_at is null and e.state = 'ACTIVE'
          and (o.priority, o.queue_position, o.job_id) < (mine.priority, mine.queue_position, mine.job_id)
          and exists (select 1 from trials t join allocations a on a.task_id = t.task_id and a.state = 'PENDING'
                      where t.experiment_id = e.id and t.state = 'ACTIVE')) as ahead,
       exists (select 1 from experiments e join trials t on t.experiment_id = e.id and t.state = 'ACTIVE'
               join allocations a on a.task_id = t.task_id and a.state not in ('PENDING', 'TERMINATED')
               where e.job_id = mine.job_id) as placed
from mine;

-- name: owner
select owner_id from experiments where id = $1;

-- name: journal
select seq, at, entry from search_journal where experiment_id = $1 order by seq limit $2 offset $3;

-- name: progress_by_request
select t.request_id, m.progress
from trials t join trial_telemetry m on m.trial_id = t.id
where t.experiment_id = $1 and t.state = 'ACTIVE' and m.progress is not null;
