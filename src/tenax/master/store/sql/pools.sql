-- name: bound_workspaces
select workspace_id from pool_bindings where pool = $1 order by workspace_id;

-- name: all_bindings
select pool, array_agg(workspace_id order by workspace_id) as workspaces from pool_bindings group by pool;

-- name: lock_pool
-- One change of a pool's bindings at a time: what is decided on them holds until it is written.
select pg_advisory_xact_lock(hashtextextended('pool ' || $1, 0));

-- name: bind
insert into pool_bindings (pool, workspace_id) select $1, unnest($2::bigint[]) on conflict do nothing returning workspace_id;

-- name: unbind
delete from pool_bindings where pool = $1 and workspace_id = any($2::bigint[]);

-- name: unbind_others
delete from pool_bindings where pool = $1 and not workspace_id = any($2::bigint[]);

-- name: known_workspaces
select id, name from workspaces where id = any($1::bigint[]) or lower(name) = any($2::text[]);

-- name: workspace
select name from workspaces where id = $1;

-- name: machines
-- Per pool, its agents that are connected and what they have.
select a.pool, count(distinct a.agent_id)::int as agents,
       count(s.slot_id) filter (where a.state = 'ENABLED' and s.enabled or u.container_id is not null)::int as slots,
       count(u.container_id)::int as used,
       array_agg(distinct s.kind) filter (where s.kind is not null) as kinds,
       array_agg(distinct s.name) filter (where s.name <> '') as devices,
       coalesce(max(n.slots), 0)::int as most_slots, coalesce(min(n.slots), 0)::int as fewest_slots
from agents a
join agent_presence p on p.agent_id = a.agent_id and p.connected
left join agent_slots s on s.agent_id = a.agent_id and s.present
left join slots_in_use u on u.agent_id = s.agent_id and u.slot_id = s.slot_id
left join lateral (select count(*) as slots from agent_slots o where o.agent_id = a.agent_id and o.present) n on true
group by a.pool;

-- name: auxiliary
-- Per pool, containers without slots that are not gone.
select a.pool, count(*)::int as running
from containers c join agents a on a.agent_id = c.agent_id
where c.gone_at is null and cardinality(c.slots) = 0
group by a.pool;
