-- name: matching
-- Only what is asked is looked at: each condition is nothing where its parameter is null.
from experiments e
where ($1::boolean is null or e.archived = $1)
  and ($2::text is null or e.id in (select d.experiment_id from experiment_documents d where d.name ilike $2))
  and ($3::text is null or e.id in (select d.experiment_id from experiment_documents d where d.description ilike $3))
  and ($4::text[] is null or e.id in (select d.experiment_id from experiment_documents d where d.labels @> $4))
  and ($5::text[] is null or e.owner_id in (select u.id from users u where lower(u.username) = any($5)))
  and ($6::bigint[] is null or e.owner_id = any($6))
  and ($7::text[] is null or e.state = any($7) or (e.state = 'ACTIVE' and (
        select case max(case a.state when 'PENDING' then 1 when 'PULLING' then 2 when 'ASSIGNED' then 3 when 'STARTING' then 3 else 4 end)
                    when 4 then 'RUNNING' when 3 then 'STARTING' when 2 then 'PULLING' else 'QUEUED' end
        from trials t join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED'
        where t.experiment_id = e.id and t.state = 'ACTIVE') = any($7)))
  and ($8::bigint is null or e.project_id = $8)
  and ($9::bigint is null or e.id > $9)
  and ($10::bigint is null or e.id < $10)
  and ($11::bigint[] is null or e.id = any($11))
  and ($12::bigint[] is null or not e.id = any($12))

-- name: views
select e.id, e.job_id, e.owner_id, u.username, u.display_name, e.project_id, p.name as project_name,
       coalesce(p.owner_id, 0) as project_owner_id, p.workspace_id, w.name as workspace_name,
       e.parent_id, coalesce(parent.archived, false) as parent_archived,
       e.state, e.reason, e.archived, e.unmanaged, e.created_at, e.started_at, e.ended_at,
       extract(epoch from coalesce(e.ended_at, now()) - e.created_at)::float8 as age_s,
       d.name, d.description, d.notes, d.labels, d.original_config, d.config, j.pool,
       coalesce(x.size_bytes, 0) as code_bytes,
       tr.trials, tr.trials_ended, tr.progress_told, tr.first_failure, ck.checkpoints, ck.checkpoint_bytes,
       best.trial_id as best_trial_id, best.best_metric,
       doing.shown_state, doing.wait_reason
from experiments e
join experiment_documents d on d.experiment_id = e.id
join jobs j on j.job_id = e.job_id
join users u on u.id = e.owner_id
join projects p on p.id = e.project_id
join workspaces w on w.id = p.workspace_id
left join experiments parent on parent.id = e.parent_id
left join contexts x on x.hash = d.context_hash
cross join lateral (
    select count(*)::int as trials, count(*) filter (where t.state <> 'ACTIVE')::int as trials_ended,
           coalesce(sum(m.progress) filter (where t.state = 'ACTIVE'), 0)::float8 as progress_told,
           (array_agg(t.reason order by t.id) filter (where e.state = 'ERROR' and t.state = 'ERROR'))[1] as first_failure
    from trials t left join trial_telemetry m on m.trial_id = t.id
    where t.experiment_id = e.id) tr
cross join lateral (
    select count(*)::int as checkpoints, coalesce(sum(c.size_bytes), 0)::bigint as checkpoint_bytes
    from trials t join checkpoints c on c.trial_id = t.id and c.state in ('COMPLETED', 'PARTIALLY_DELETED')
    where t.experiment_id = e.id) ck
left join lateral (
    select m.trial_id, m.best_metric
    from trials t join trial_telemetry m on m.trial_id = t.id
    where t.experiment_id = e.id and m.best_metric is not null
    order by m.best_metric in ('NaN', 'Infinity', '-Infinity'),
             case when d.config -> 'searcher' ->> 'smaller_is_better' = 'false' then - m.best_metric else m.best_metric end,
             m.trial_id
    limit 1) best on true
left join lateral (
    select case max(case a.state when 'PENDING' then 1 when 'PULLING' then 2 when 'ASSIGNED' then 3 when 'STARTING' then 3 else 4 end)
                    when 4 then 'RUNNING' when 3 then 'STARTING' when 2 then 'PULLING' else 'QUEUED' end as shown_state,
           (array_agg(q.reason order by a.requested_at, a.allocation_id) filter (where q.reason is not null))[1] as wait_reason
    from trials t
    join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED'
    left join allocation_waits q on q.allocation_id = a.allocation_id and a.state = 'PENDING'
    where t.experiment_id = e.id and t.state = 'ACTIVE') doing on e.state = 'ACTIVE'
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

-- name: set_archived
update experiments set archived = $2, version = version + 1
where id = $1 and state in ('COMPLETED', 'CANCELED', 'ERROR', 'DELETE_FAILED')
returning id;

-- name: edit
update experiment_documents
set name = coalesce($2, name), description = coalesce($3, description), notes = coalesce($4, notes), labels = coalesce($5, labels)
where experiment_id = $1
returning experiment_id;

-- name: journal
select seq, at, entry from search_journal where experiment_id = $1 order by seq limit $2 offset $3;

-- name: progress_by_request
select t.request_id, m.progress
from trials t join trial_telemetry m on m.trial_id = t.id
where t.experiment_id = $1 and t.state = 'ACTIVE' and m.progress is not null;
