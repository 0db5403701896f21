-- name: get
select task_id, kind, created_at, ended_at from tasks where task_id = $1;

-- name: allocations
select a.allocation_id, a.task_id, a.slots,
       case when a.waiting_since is not null and a.state = 'RUNNING' then 'WAITING' else a.state end as state,
       a.ready_at is not null and a.waiting_since is null as ready, a.requested_at, a.assigned_at, a.ended_at,
       a.exit_reason, q.reason as wait_reason, (select (c.exit ->> 'code')::int from containers c
        where c.allocation_id = a.allocation_id and c.exit is not null
        order by (c.exit ->> 'code')::int is null, (c.exit ->> 'code')::int = 0, c.rank limit 1) as exit_code
from allocations a left join allocation_waits q on q.allocation_id = a.allocation_id and a.state = 'PENDING'
where a.task_id = $1
order by a.run_id desc;

-- name: allocation
select a.allocation_id, a.task_id, a.slots,
       case when a.waiting_since is not null and a.state = 'RUNNING' then 'WAITING' else a.state end as state,
       a.ready_at is not null and a.waiting_since is null as ready, a.requested_at, a.assigned_at, a.ended_at,
       a.exit_reason, q.reason as wait_reason, (select (c.exit ->> 'code')::int from containers c
        where c.allocation_id = a.allocation_id and c.exit is not null
        order by (c.exit ->> 'code')::int is null, (c.exit ->> 'code')::int = 0, c.rank limit 1) as exit_code
from allocations a left join allocation_waits q on q.allocation_id = a.allocation_id and a.state = 'PENDING'
where a.allocation_id = $1;

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
