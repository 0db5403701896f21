-- name: views
select a.agent_id, a.pool, a.state, a.created_at, coalesce(p.connected, false) as connected, p.last_seen_at,
       coalesce(p.hostname, '') as hostname, coalesce(p.address, '') as address, coalesce(p.runtime, '') as runtime,
       coalesce(p.agent_version, '') as agent_version, coalesce(p.foreign_containers, '[]'::jsonb) as foreign_containers
from agents a left join agent_presence p on p.agent_id = a.agent_id
where $1::text is null or a.agent_id = $1;

-- name: slots
select s.agent_id, s.slot_id, s.kind, s.name, s.uuid, s.enabled, s.draining, u.container_id
from agent_slots s left join slots_in_use u on u.agent_id = s.agent_id and u.slot_id = s.slot_id
where s.present and ($1::text is null or s.agent_id = $1)
order by s.agent_id, s.slot_id;

-- name: containers
select container_id, allocation_id, agent_id, slots, state from containers
where gone_at is null and ($1::text is null or agent_id = $1)
order by allocation_id, rank;
