-- name: create
insert into cluster (cluster_id, name, secret) values ($1, $2, $3) on conflict do nothing;

-- name: rename
update cluster set name = $1 where name <> $1 and $1 <> '';

-- name: get
select cluster_id::text as cluster_id, generation, name, secret from cluster;

-- name: raise_generation
update cluster set generation = generation + (generation = $1)::int,
    restored_at = case when generation = $1 then now() else restored_at end
returning generation;

-- name: message_get
select message, starts_at, ends_at, created_at, starts_at <= now() as begun
from cluster_message where ends_at is null or ends_at > now();

-- name: message_lock
-- Of the table: there may be no row yet. Who reads does not wait.
lock table cluster_message in share row exclusive mode;

-- name: put
insert into cluster_message (message, starts_at, ends_at, set_by) values ($1, $2, $3, $4)
on conflict (only_row) do update
set message = excluded.message, starts_at = excluded.starts_at, ends_at = excluded.ends_at, set_by = excluded.set_by,
    created_at = now();

-- name: drop
delete from cluster_message;

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
-- Per pool and kind, the slots by what they do; of agents that are not connected all are away.
select a.pool, s.kind,
       case when p.connected is not true then 'away' when s.fault <> '' then 'broken'
            when u.container_id is not null then 'used' when s.enabled and a.state = 'ENABLED' then 'free' else 'disabled' end as state,
       count(*)::int as slots
from agents a
left join agent_presence p on p.agent_id = a.agent_id
join agent_slots s on s.agent_id = a.agent_id and s.present
left join slots_in_use u on u.agent_id = s.agent_id and u.slot_id = s.slot_id
group by 1, 2, 3;

-- name: agents
select a.agent_id, a.pool, a.state, a.state = 'DRAINING' and a.reason <> '' as taken_out, coalesce(p.connected, false) as connected, coalesce(p.address, '') as address,
       coalesce(p.agent_version, '') as version, coalesce(p.runtime, '') as runtime,
       greatest(0, extract(epoch from now() - p.last_seen_at))::float8 as silent_s
from agents a left join agent_presence p on p.agent_id = a.agent_id
order by a.agent_id;

-- name: requests
-- Per pool, the attempts that wait and those that have places, what slots they ask for, and how long the first waits.
select j.pool, a.state = 'PENDING' as waiting, count(*)::int as attempts, sum(a.slots)::int as slots,
       greatest(0, max(extract(epoch from now() - a.requested_at)))::float8 as longest_s
from allocations a join tasks t on t.task_id = a.task_id join jobs j on j.job_id = t.job_id
where a.state <> 'TERMINATED'
group by 1, 2;

-- name: waiting
select j.pool, w.reason, count(*)::int as requests
from allocation_waits w
join allocations a on a.allocation_id = w.allocation_id and a.state = 'PENDING'
join tasks t on t.task_id = a.task_id
join jobs j on j.job_id = t.job_id
group by 1, 2;

-- name: live_experiments
select state, count(*)::int as experiments from experiments where ended_at is null group by 1;

-- name: telemetry
select coalesce((select sum(pg_total_relation_size(relid)) from pg_partition_tree('log_chunks')), 0)::bigint as logs,
       coalesce((select sum(pg_total_relation_size(relid))
                 from unnest(array['metric_tail', 'metric_blocks', 'metric_chunks']) parent,
                      pg_partition_tree(parent::regclass)), 0)::bigint
           + pg_total_relation_size('metric_groups') as metrics;

-- name: heaps
-- What would be read by whoever goes through all rows: without what is stored outside of them.
select coalesce((select sum(pg_relation_size(relid)) from pg_partition_tree('log_chunks')), 0)::bigint as logs,
       coalesce((select sum(pg_relation_size(relid))
                 from unnest(array['metric_tail', 'metric_blocks', 'metric_chunks']) parent,
                      pg_partition_tree(parent::regclass)), 0)::bigint as metrics;

-- name: live_logs
-- From $1 percent of the pages. A length is known without reading what is stored outside of its row.
select (coalesce(sum(octet_length(body) + octet_length(meta) + 200), 0) * 100 / $1::float8)::bigint
from log_chunks tablesample system ($1::float4);

-- name: live_metrics
select (100 / $1::float8 * (
    (select coalesce(sum(pg_column_size(data) + coalesce(pg_column_size(present), 0) + 100), 0)
     from metric_chunks tablesample system ($1::float4))
  + (select coalesce(sum(pg_column_size(steps) + pg_column_size(times) + pg_column_size(bodies)
                         + coalesce(pg_column_size(batches), 0) + 100), 0)
     from metric_tail tablesample system ($1::float4))
  + (select coalesce(sum(pg_column_size(steps) + pg_column_size(times) + 200), 0)
     from metric_blocks tablesample system ($1::float4))))::bigint + pg_total_relation_size('metric_groups');

-- name: local_directory
-- A connection by a socket has no address; one within a machine has the same at both ends, or a loopback's. Who may not
-- read settings sees none.
select setting from pg_settings
where name = 'data_directory'
  and (inet_server_addr() is null or inet_server_addr() = inet_client_addr() or inet_server_addr() <<= '127.0.0.0/8');

-- name: database_size
select pg_database_size(current_database());

-- name: largest_logs
-- What the most lines are of: experiments, and tasks that are of none.
select coalesce('experiment ' || r.experiment_id, 'task ' || l.task_id) as what
from log_tasks l join tasks t on t.task_id = l.task_id left join trials r on r.id = t.trial_id
group by 1 order by sum(l.next_line) desc, 1 limit 3;

-- name: largest_metrics
-- What the most reports are of.
select 'experiment ' || r.experiment_id as what
from metric_groups g join trials r on r.id = g.trial_id
group by 1 order by sum(g.next_ord) desc, 1 limit 3;

-- name: forget_masters
-- Of those that are gone. What another forgets at the same moment is passed over.
delete from masters where master_id in (
    select master_id from masters
    where master_id <> $1 and pg_try_advisory_xact_lock_shared(hashtextextended(holder, 0))
    for update skip locked
);

-- name: announce_master
insert into masters (master_id, holder, machine, address, version, roles, settings)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (master_id) do update set holder = excluded.holder;

-- name: master_settings
update masters set settings = $2 where master_id = $1;

-- name: masters
with present as materialized (
    select * from masters where not pg_try_advisory_xact_lock_shared(hashtextextended(holder, 0))
)
select master_id, machine, address, version, roles, settings, started_at,
    (
        select coalesce(array_agg(loop order by loop), '{}') from leases
        where leases.holder = present.holder and expires_at > clock_timestamp()
    ) as loops
from present order by started_at, master_id;
