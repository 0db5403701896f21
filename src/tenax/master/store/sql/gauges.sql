-- name: members
-- Containers that are on a machine, with their devices.
select c.container_id, c.allocation_id, c.agent_id, a.task_id, t.kind, j.job_id, e.id as experiment_id, d.labels,
       (select array_agg(s.uuid order by s.slot_id) from agent_slots s
        where s.agent_id = c.agent_id and s.slot_id = any(c.slots) and s.uuid <> '' and s.kind <> 'cpu') as devices
from containers c
join allocations a on a.allocation_id = c.allocation_id
join tasks t on t.task_id = a.task_id
join jobs j on j.job_id = t.job_id
left join trials tr on tr.id = t.trial_id
left join experiments e on e.id = tr.experiment_id
left join experiment_documents d on d.experiment_id = e.id
where c.gone_at is null
order by c.container_id;

-- name: slots
-- Per pool and kind, the slots of connected agents by what they do.
select a.pool, s.kind,
       case when u.container_id is not null then 'used' when s.enabled and a.state = 'ENABLED' then 'free' else 'disabled' end as state,
       count(*)::int as slots
from agents a
join agent_presence p on p.agent_id = a.agent_id and p.connected
join agent_slots s on s.agent_id = a.agent_id and s.present
left join slots_in_use u on u.agent_id = s.agent_id and u.slot_id = s.slot_id
group by 1, 2, 3;

-- name: agents
select a.agent_id, a.pool, a.state, coalesce(p.connected, false) as connected, coalesce(p.address, '') as address
from agents a left join agent_presence p on p.agent_id = a.agent_id
order by a.agent_id;

-- name: requests
-- Per pool, the attempts that wait and those that have places.
select j.pool, a.state = 'PENDING' as waiting, count(*)::int as attempts
from allocations a join tasks t on t.task_id = a.task_id join jobs j on j.job_id = t.job_id
where a.state <> 'TERMINATED'
group by 1, 2;
