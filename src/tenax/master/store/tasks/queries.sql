-- name: create_job
insert into jobs (job_id, pool, priority, weight, queue_position, owner_id, time_limit_s)
values ($1, $2, $3, $4, floor(extract(epoch from clock_timestamp()) * 1000000), $5, $6);

-- name: create_task
insert into tasks (task_id, kind, job_id, spec) values ($1, $2, $3, $4);

-- name: create_launched
insert into launched_tasks (task_id, workspace_id, project_id, parent_id, forked_from, description, pausable, context_hash)
values ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: lock
-- As with trials: what refers to it may be inserted meanwhile.
select l.task_id, t.kind, t.job_id, l.state, l.reason, l.version, l.run_id, l.pausable
from launched_tasks l join tasks t on t.task_id = l.task_id
where l.task_id = any($1::text[]) order by l.task_id for no key update of l;

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
-- So many of those that are in one of these states, in one order, as families are.
select l.task_id from launched_tasks l
where l.workspace_id = $1 and l.ended_at is null and l.state = any($2::text[])
order by l.task_id limit $3;

-- name: root
-- The topmost ancestor.
with recursive line (task_id, parent_id) as (
    select task_id, parent_id from launched_tasks where task_id = $1
    union
    select p.task_id, p.parent_id from launched_tasks p join line c on p.task_id = c.parent_id)
select task_id from line where parent_id is null limit 1;

-- name: set_states
update launched_tasks l
set state = n.state, reason = n.reason, version = l.version + 1,
    ended_at = case when n.state in ('COMPLETED', 'CANCELED', 'ERROR') then now() end
from unnest($1::text[], $2::bigint[], $3::text[], $4::text[]) as n (task_id, version, state, reason)
where l.task_id = n.task_id and l.version = n.version
returning l.task_id;

-- name: end_tasks
update tasks set ended_at = now() where task_id = any($1::text[]) and ended_at is null;

-- name: end_jobs
update jobs set ended_at = now(), version = version + 1 where job_id = any($1::text[]) and ended_at is null;

-- name: set_priority
update jobs set priority = $2, version = version + 1
where job_id = (select job_id from tasks where task_id = $1) and ended_at is null
returning job_id;

-- name: next_run
update launched_tasks set run_id = run_id + 1, version = version + 1
where task_id = $1 and state = 'ACTIVE'
returning run_id;

-- name: size
select coalesce((spec -> 'config' -> 'resources' ->> 'slots')::int, 0) as slots,
       nullif(spec -> 'config' -> 'resources' -> 'constraints', 'null') as constraints
from tasks where task_id = $1;

-- name: unsettled
-- Tasks that have something coming: they live, or an attempt of theirs still does.
select l.task_id, l.state, a.allocation_id, a.state as allocation_state, a.preemption, a.ready_at is not null as ready, a.listens,
       coalesce((select bool_and(c.want <> 'RUN' or c.state = 'TERMINATED')
                 from containers c where c.allocation_id = a.allocation_id), false) as ending
from launched_tasks l
left join allocations a on a.task_id = l.task_id and a.state <> 'TERMINATED'
where l.ended_at is null and (l.state <> 'PAUSED' or a.allocation_id is not null)
  and ($1::text[] is null or l.task_id = any($1))
order by l.task_id;

-- name: get
select task_id, kind, created_at, ended_at from tasks where task_id = $1;

-- name: attempts
select a.allocation_id, a.task_id, a.slots,
       case when a.waiting_since is not null and a.state = 'RUNNING' then 'WAITING' else a.state end as state,
       a.ready_at is not null and a.waiting_since is null as ready, a.requested_at, a.assigned_at, a.ended_at,
       a.exit_reason, q.reason as wait_reason, (select (c.exit ->> 'code')::int from containers c
        where c.allocation_id = a.allocation_id and c.exit is not null
        order by (c.exit ->> 'code')::int is null, (c.exit ->> 'code')::int = 0, c.rank limit 1) as exit_code
from allocations a left join allocation_waits q on q.allocation_id = a.allocation_id and a.state = 'PENDING';

-- name: allocations
{{attempts}} where a.task_id = $1 order by a.run_id desc;

-- name: allocation
{{attempts}} where a.allocation_id = $1;

-- name: accelerators
-- What a member told itself, else what its agent says of the slots that it was given.
select c.container_id, c.allocation_id, a.task_id, j.pool,
       coalesce(m.data, jsonb_build_object('accelerator_type', coalesce(d.type, ''),
                                           'accelerator_uuids', coalesce(d.uuids, '[]'::jsonb),
                                           'node_name', c.agent_id)) as data
from containers c
join allocations a on a.allocation_id = c.allocation_id
join tasks t on t.task_id = a.task_id
join jobs j on j.job_id = t.job_id
left join allocation_accelerators m on m.container_id = c.container_id
left join lateral (
    select max(case when s.kind = 'cpu' or s.name = '' then s.kind else s.name end) as type,
           jsonb_agg(s.uuid order by s.slot_id) filter (where s.kind <> 'cpu' and s.uuid <> '') as uuids
    from agent_slots s where s.agent_id = c.agent_id and s.slot_id = any (c.slots)
) d on true
where a.task_id = $1 and (m.container_id is not null or c.slots <> '{}')
order by c.allocation_id, c.container_id;

-- name: active_by_kind
select t.kind, count(*)::int as tasks
from launched_tasks l join tasks t on t.task_id = l.task_id
where l.ended_at is null
group by t.kind;

-- name: open_allocations
select a.allocation_id, a.task_id, a.slots, a.requested_at, t.kind, t.trial_id, tr.experiment_id, j.pool, j.priority,
       d.name as experiment_name, l.description, a.state, q.reason as wait_reason,
       coalesce((select jsonb_agg(jsonb_build_object('container_id', c.container_id, 'agent_id', c.agent_id, 'devices', coalesce(
                     (select jsonb_agg(jsonb_build_object('id', s.slot_id, 'type', 'TYPE_' || upper(s.kind), 'brand', s.name, 'uuid', s.uuid)
                                       order by s.slot_id)
                      from agent_slots s where s.agent_id = c.agent_id and s.slot_id = any(c.slots)), '[]'::jsonb)) order by c.rank)
                 from containers c where c.allocation_id = a.allocation_id), '[]'::jsonb) as members
from allocations a
join tasks t on t.task_id = a.task_id
join jobs j on j.job_id = t.job_id
left join allocation_waits q on q.allocation_id = a.allocation_id and a.state = 'PENDING'
left join launched_tasks l on l.task_id = t.task_id
left join trials tr on tr.id = t.trial_id
left join experiment_documents d on d.experiment_id = tr.experiment_id
where a.state <> 'TERMINATED'
order by a.requested_at, a.allocation_id;

-- name: views
-- The documents only where they are asked for ($2): each may have half a megabyte.
select t.task_id, t.kind, t.job_id, j.owner_id, u.username, u.display_name, l.description,
       -- With the place in the queue that it has now.
       case when not $2 then '{}'::jsonb
            when jsonb_typeof(t.spec #> '{config,resources}') = 'object'
            then jsonb_set(t.spec -> 'config', '{resources,priority}', to_jsonb(j.priority)) else t.spec -> 'config' end as config,
       case when $2 then coalesce(t.spec -> 'own', '{}'::jsonb) else '{}'::jsonb end as own,
       case when $2 then t.spec -> 'submitted' end as submitted, j.pool, j.priority, l.workspace_id, l.project_id, l.parent_id, l.forked_from, l.state, l.reason, l.pausable,
       t.created_at, t.ended_at, a.allocation_id, a.state as attempt_state, coalesce(a.ready, false) as ready, a.wait_reason,
       m.container_id, m.container_state, m.exit_code, coalesce(m.devices, '[]'::jsonb) as devices
from launched_tasks l
join tasks t on t.task_id = l.task_id
join jobs j on j.job_id = t.job_id
join users u on u.id = j.owner_id
left join lateral (
    select a.allocation_id, case when a.waiting_since is not null and a.state = 'RUNNING' then 'WAITING' else a.state end as state,
           a.ready_at is not null as ready, q.reason as wait_reason
    from allocations a
    left join allocation_waits q on q.allocation_id = a.allocation_id and a.state = 'PENDING'
    where a.task_id = l.task_id order by a.run_id desc limit 1) a on true
left join lateral (
    -- As a shell counts: a signal that nobody of ours sent is 128 and its number.
    select c.container_id, c.state as container_state,
           coalesce((c.exit ->> 'code')::int,
                    case when not coalesce((c.exit ->> 'asked')::boolean, false) then 128 + (c.exit ->> 'signal')::int end) as exit_code,
           (select jsonb_agg(jsonb_build_object('id', s.slot_id, 'type', 'TYPE_' || upper(s.kind), 'brand', s.name, 'uuid', s.uuid)
                             order by s.slot_id)
            from agent_slots s where s.agent_id = c.agent_id and s.slot_id = any(c.slots)) as devices
    from containers c where c.allocation_id = a.allocation_id order by c.rank limit 1) m on true
where l.task_id = any($1::text[]);

-- name: template_views
select t.name, t.workspace_id, w.name as workspace_name, w.archived as workspace_archived, t.owner_id, u.username, t.config,
       t.version, t.created_at, t.modified_at
from templates t join workspaces w on w.id = t.workspace_id join users u on u.id = t.owner_id
where t.name = any($1::text[]);

-- name: template_lock
select name from templates where name = $1 for update;

-- name: create
insert into templates (name, workspace_id, owner_id, config) values ($1, $2, $3, $4)
on conflict (name) do nothing
returning name;

-- name: set_config
update templates set config = $3, version = version + 1, modified_at = now()
where name = $1 and version = $2
returning name;

-- name: rename
update templates set name = $3, version = version + 1, modified_at = now()
where name = $1 and version = $2
returning name;

-- name: delete
delete from templates where name = $1 returning name;

-- name: put
insert into contexts (hash, archive, size_bytes) values ($1, $2, $3) on conflict (hash) do nothing;

-- name: begin_whole
-- A large object, which takes pieces; it is gone again before its transaction ends.
select lo_from_bytea(0, $1);

-- name: add_to_whole
select lo_put($1::oid, $2::bigint, $3);

-- name: put_whole
insert into contexts (hash, archive, size_bytes) values ($1, lo_get($2::oid), $3) on conflict (hash) do nothing;

-- name: drop_whole
select lo_unlink($1::oid);

-- name: keep
-- Not dropped until whoever names it is committed.
select true from contexts where hash = $1 for key share;

-- name: part
-- A piece of an archive, so that none is held as a whole; the first byte is number 1.
select substring(archive from $2 for $3) from contexts where hash = $1;

-- name: context_size
select octet_length(archive) from contexts where hash = $1;

-- name: of_experiment
select d.context_hash from experiment_documents d where d.experiment_id = $1;

-- name: of_task
select t.task_id, coalesce(d.context_hash, l.context_hash) as context_hash
from tasks t
left join launched_tasks l on l.task_id = t.task_id
left join trials tr on tr.id = t.trial_id
left join experiment_documents d on d.experiment_id = tr.experiment_id
where t.task_id = $1;

-- name: needed_by_agent
-- Whether a container of this agent runs that code, or will.
select exists (
    select 1
    from containers c
    join allocations a on a.allocation_id = c.allocation_id
    join tasks t on t.task_id = a.task_id
    left join launched_tasks l on l.task_id = t.task_id
    left join trials tr on tr.id = t.trial_id
    left join experiment_documents d on d.experiment_id = tr.experiment_id
    where c.agent_id = $1 and c.gone_at is null and coalesce(d.context_hash, l.context_hash) = $2);

-- name: claim
-- Whoever holds it is about to name it.
select true from contexts where hash = $1 for update skip locked;

-- name: delete_unused
delete from contexts c
where c.hash = $1 and not exists (select 1 from experiment_documents d where d.context_hash = c.hash)
  and not exists (select 1 from launched_tasks l where l.context_hash = c.hash);
