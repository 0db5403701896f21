-- name: hold
-- The agent's row, so that a placement there waits for what is decided now, or is seen by it.
select agent_id from agents where agent_id = $1 for no key update;

-- name: set_slot
update agent_slots set enabled = $3, draining = $4 where agent_id = $1 and slot_id = $2 and present returning slot_id;

-- name: turned_out
-- Attempts with a live member on what was turned off at once: on an agent, or on a slot. Of one agent, or of all.
select distinct on (c.allocation_id) c.allocation_id, c.agent_id, a.state = 'DISABLED' as whole, s.slot_id
from containers c
join agents a on a.agent_id = c.agent_id
join allocations x on x.allocation_id = c.allocation_id and x.state not in ('PENDING', 'TERMINATED')
left join agent_slots s on s.agent_id = c.agent_id and s.slot_id = any(c.slots) and not s.enabled and not s.draining
where c.gone_at is null and c.state <> 'TERMINATED' and c.want = 'RUN' and (a.state = 'DISABLED' or s.slot_id is not null)
  and (x.preemption_deadline is null or x.preemption_deadline > now())
  and ($1::text is null or c.agent_id = $1)
order by c.allocation_id, c.rank;

-- name: closed
-- Whether anything that a placement has just taken was turned off, or is not there any more.
select exists (select 1 from unnest($1::text[]) as told (agent_id)
               where not exists (select 1 from agents a where a.agent_id = told.agent_id and a.state = 'ENABLED'))
    or exists (select 1 from containers c join slots_in_use u on u.container_id = c.container_id
               join agent_slots s on s.agent_id = u.agent_id and s.slot_id = u.slot_id
               where c.allocation_id = $2 and not s.enabled);

-- name: standing
select coalesce(p.connected and p.last_seen_at > now() - interval '30 seconds', false) as connected,
       (select count(*) from containers c where c.agent_id = a.agent_id and c.state <> 'TERMINATED')::int as live
from agents a left join agent_presence p on p.agent_id = a.agent_id
where a.agent_id = $1;

-- name: forget_containers
update containers set gone_at = now(), version = version + 1 where agent_id = $1 and gone_at is null and state = 'TERMINATED';

-- name: forget_slots
delete from slots_in_use where agent_id = $1;

-- name: remove
with gone as (delete from agents where agent_id = $1 returning agent_id, revision)
insert into removed_agents (agent_id, revision) select agent_id, revision from gone
on conflict (agent_id) do update set revision = greatest(removed_agents.revision, excluded.revision), removed_at = now();
