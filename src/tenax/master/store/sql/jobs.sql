-- name: shown
-- What is told of jobs beside their place in the queue.
with waiting as materialized (
    select distinct on (o.job_id) o.job_id, q.reason
    from allocation_waits q
    join allocations a on a.allocation_id = q.allocation_id and a.state = 'PENDING'
    join tasks o on o.task_id = a.task_id
    where o.job_id = any($1::text[])
    order by o.job_id, a.requested_at, a.allocation_id)
select j.job_id, j.pool, j.priority, j.weight, j.submitted_at, j.owner_id, u.username,
       e.id as experiment_id, coalesce(d.name, l.description, '') as name, t.task_id, coalesce(t.kind, 'TRIAL') as kind,
       coalesce(p.workspace_id, l.workspace_id, 1) as workspace_id, w.reason
from jobs j
join users u on u.id = j.owner_id
left join experiments e on e.job_id = j.job_id
left join experiment_documents d on d.experiment_id = e.id
left join projects p on p.id = e.project_id
left join lateral (
    select o.task_id, o.kind from tasks o where o.job_id = j.job_id and e.id is null order by o.created_at, o.task_id limit 1) t on true
left join launched_tasks l on l.task_id = t.task_id
left join waiting w on w.job_id = j.job_id
where j.job_id = any($1::text[]);

-- name: hidden
-- Jobs of the cluster's own, which are in nobody's way: not shown.
select distinct job_id from tasks where kind = 'CHECKPOINT_GC' and ended_at is null;

-- name: find
select j.job_id, j.owner_id, j.pool, j.priority, j.ended_at is not null as ended, e.id as experiment_id,
       coalesce(p.workspace_id, l.workspace_id, 1) as workspace_id, t.kind
from jobs j
left join experiments e on e.job_id = j.job_id
left join projects p on p.id = e.project_id
left join lateral (
    select o.task_id, o.kind from tasks o where o.job_id = j.job_id and e.id is null order by o.created_at, o.task_id limit 1) t on true
left join launched_tasks l on l.task_id = t.task_id
where j.job_id = $1;

-- name: lock_queue
-- One change of a pool's order at a time.
select pg_advisory_xact_lock(hashtextextended('queue ' || $1, 0));

-- name: order
select job_id, queue_position from jobs
where pool = $1 and priority = $2 and ended_at is null
order by queue_position, job_id;

-- name: set_positions
update jobs set queue_position = told.position, version = version + 1
from (select unnest($1::text[]) as job_id, unnest($2::float8[])::numeric as position) told
where jobs.job_id = told.job_id and jobs.ended_at is null;

-- name: set_priority
update jobs set priority = $2, version = version + 1 where job_id = $1;

-- name: set_weight
update jobs set weight = $2, version = version + 1 where job_id = $1;

-- name: set_pool
update jobs set pool = $2, version = version + 1 where job_id = $1;

-- name: note_in_config
-- What is shown of the experiment's configuration, and what a fork of it begins with.
update experiment_documents
set config = jsonb_set(config, array['resources', $2::text], $3::jsonb, true)
where experiment_id = $1 and jsonb_typeof(config -> 'resources') = 'object';

-- name: placed_allocations
select a.allocation_id
from tasks t join allocations a on a.task_id = t.task_id and a.state not in ('PENDING', 'TERMINATED')
where t.job_id = $1
order by a.allocation_id;

-- name: sizes
-- What the open requests of a job ask for, and what an experiment's next ones will.
select coalesce(max(a.slots), 0)::int as slots, coalesce(bool_or(a.single_node), false) as single_node,
       coalesce(bool_and(a.preemptible), true) as preemptible
from tasks t join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED'
where t.job_id = $1;
