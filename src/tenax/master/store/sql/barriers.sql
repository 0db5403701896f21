-- name: arrive
insert into rendezvous_members (container_id, allocation_id)
select container_id, allocation_id from containers where container_id = $1 and allocation_id = $2
on conflict (container_id) do nothing;

-- name: members
select c.container_id, c.rank, c.agent_id, c.state, c.address, cardinality(c.slots) as slots, c.exit ->> 'reason' as exit_reason,
       m.container_id is not null as arrived, a.state as allocation_state, a.exit_reason as allocation_reason
from containers c
join allocations a on a.allocation_id = c.allocation_id
left join rendezvous_members m on m.container_id = c.container_id
where c.allocation_id = $1
order by c.rank;

-- name: lock_allocation
-- Those who gather come one after the other, so that the order of their arrival is the same for all.
select state from allocations where allocation_id = $1 for no key update;

-- name: bring
insert into all_gathers (allocation_id, request_uuid, num_peers, data, arrived_at)
values ($1, $2, $3, $4, clock_timestamp())
on conflict (allocation_id, request_uuid) do nothing;

-- name: gathered
select request_uuid, num_peers, data from all_gathers where allocation_id = $1 order by arrived_at, request_uuid;

-- name: signal
select a.preemption, a.state from allocations a where a.allocation_id = $1;

-- name: is_member
select exists (select 1 from containers where container_id = $2 and allocation_id = $1);

-- name: put_accelerators
insert into allocation_accelerators (container_id, allocation_id, data)
select container_id, allocation_id, $3 from containers where container_id = $2 and allocation_id = $1
on conflict (container_id) do update set data = excluded.data, reported_at = now();
