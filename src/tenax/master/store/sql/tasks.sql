-- name: create_job
insert into jobs (job_id, pool, priority, weight, queue_position, owner_id)
values ($1, $2, $3, $4, floor(extract(epoch from clock_timestamp()) * 1000000), $5);

-- name: create_task
insert into tasks (task_id, kind, job_id, spec) values ($1, $2, $3, $4);

-- name: create_launched
insert into launched_tasks (task_id, workspace_id, project_id, parent_id, forked_from, description, pausable, context_hash)
values ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: lock
-- As with trials: what refers to it may be inserted meanwhile.
select l.task_id, t.kind, t.job_id, l.state, l.reason, l.version, l.run_id, l.pausable
from launched_tasks l join tasks t on t.task_id = l.task_id
where l.task_id = $1 for no key update of l;

-- name: lock_family
-- A task and all that came from it, locked in one order so that two callers cannot deadlock.
with recursive family (task_id) as (
    select task_id from launched_tasks where task_id = $1
    union
    select c.task_id from launched_tasks c join family f on c.parent_id = f.task_id)
select l.task_id, t.kind, t.job_id, l.state, l.reason, l.version, l.run_id, l.pausable
from launched_tasks l join tasks t on t.task_id = l.task_id
where l.task_id in (select task_id from family)
order by l.task_id for no key update of l;

-- name: live_in_workspace
-- In one order, as families are.
select l.task_id from launched_tasks l where l.workspace_id = $1 and l.ended_at is null order by l.task_id;

-- name: root
-- The topmost ancestor.
with recursive line (task_id, parent_id) as (
    select task_id, parent_id from launched_tasks where task_id = $1
    union
    select p.task_id, p.parent_id from launched_tasks p join line c on p.task_id = c.parent_id)
select task_id from line where parent_id is null limit 1;

-- name: set_state
update launched_tasks
set state = $3, reason = $4, version = version + 1,
    ended_at = case when $3 in ('COMPLETED', 'CANCELED', 'ERROR') then now() end
where task_id = $1 and version = $2
returning version;

-- name: end_task
update tasks set ended_at = now() where task_id = $1 and ended_at is null;

-- name: end_job
update jobs set ended_at = now(), version = version + 1 where job_id = $1 and ended_at is null;

-- name: set_priority
update jobs set priority = $2, version = version + 1
where job_id = (select job_id from tasks where task_id = $1) and ended_at is null
returning job_id;

-- name: next_run
update launched_tasks set run_id = run_id + 1, version = version + 1
where task_id = $1 and state = 'ACTIVE'
returning run_id;

-- name: size
select coalesce((spec -> 'config' -> 'resources' ->> 'slots')::int, 0) as slots from tasks where task_id = $1;

-- name: unsettled
-- Tasks that have something coming: they live, or an attempt of theirs still does.
select l.task_id, l.state, a.allocation_id, a.state as allocation_state, a.preemption, a.ready_at is not null as ready,
       coalesce((select bool_and(c.want <> 'RUN' or c.state = 'TERMINATED')
                 from containers c where c.allocation_id = a.allocation_id), false) as ending
from launched_tasks l
left join allocations a on a.task_id = l.task_id and a.state <> 'TERMINATED'
where l.ended_at is null and (l.state <> 'PAUSED' or a.allocation_id is not null)
  and ($1::text[] is null or l.task_id = any($1))
order by l.task_id;
