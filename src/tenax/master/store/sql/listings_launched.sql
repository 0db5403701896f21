-- name: views
select t.task_id, t.kind, t.job_id, j.owner_id, u.username, u.display_name, l.description,
       -- With the place in the queue that it has now.
       case when jsonb_typeof(t.spec #> '{config,resources}') = 'object'
            then jsonb_set(t.spec -> 'config', '{resources,priority}', to_jsonb(j.priority)) else t.spec -> 'config' end as config,
       j.pool, j.priority, l.workspace_id, l.project_id, l.parent_id, l.forked_from, l.state, l.reason, l.pausable,
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

-- name: children
select task_id from launched_tasks where parent_id = $1 order by task_id;
