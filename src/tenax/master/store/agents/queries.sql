-- name: join
-- The name of an agent that there is already is nobody else's.
insert into agents (agent_id, pool, credential_hash, revision)
values ($1, $2, $3, coalesce((select revision + 1 from removed_agents where agent_id = $1), 1))
on conflict (agent_id) do nothing
returning agent_id;

-- name: rejoin
update agents set credential_hash = $3, pool = $2, version = version + 1 where agent_id = $1;

-- name: credential_of
select credential_hash from agents where agent_id = $1 for no key update;

-- name: join_token_create
insert into join_tokens (token_hash, made_by, description, agent_id, uses_left, expires_at)
values ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))
returning id;

-- name: join_token_columns
select id, description, made_by, agent_id, uses_left, created_at, expires_at, revoked_at,
       revoked_at is null and expires_at > now() and uses_left is distinct from 0 as good
from join_tokens

-- name: join_token_revoke
update join_tokens set revoked_at = coalesce(revoked_at, now()) where id = $1 returning id;

-- name: join_token_use
update join_tokens set uses_left = uses_left - 1
where token_hash = $1 and revoked_at is null and expires_at > now() and uses_left is distinct from 0
  and (agent_id is null or agent_id = $2)
returning id;

-- name: join_token_is_good
select exists (
    select 1 from join_tokens
    where token_hash = $1 and revoked_at is null and expires_at > now() and uses_left is distinct from 0);

-- name: join_tokens_forget
delete from join_tokens where coalesce(revoked_at, expires_at) < now() - interval '90 days';

-- name: standing
select coalesce(p.session, 0) as session, a.revision, (select generation from cluster) as generation
from agents a left join agent_presence p on p.agent_id = a.agent_id
where a.agent_id = $1;

-- name: is_connected
select connected and last_seen_at > now() - interval '30 seconds' from agent_presence where agent_id = $1;

-- name: known_containers
-- What is gone is not known any more.
select container_id from containers where agent_id = $1 and container_id = any($2::text[]) and gone_at is null;

-- name: put_slots
insert into agent_slots (agent_id, slot_id, kind, name, uuid, memory, fault)
select $1, s.* from unnest($2::integer[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[]) as s
on conflict (agent_id, slot_id) do update
set kind = excluded.kind, name = excluded.name, uuid = excluded.uuid, memory = excluded.memory, fault = excluded.fault,
    present = true;

-- name: drop_slots
update agent_slots set present = false where agent_id = $1 and not slot_id = any($2::integer[]) and present;

-- name: open_session
-- With the number of the connection.
insert into agent_presence
    (agent_id, session, connected, hostname, address, runtime, agent_version, foreign_containers, allowed, labels)
values ($1, 1, true, $2, $3, $4, $5, $6, $7, $8)
on conflict (agent_id) do update
set session = agent_presence.session + 1, connected = true, last_seen_at = clock_timestamp(), hostname = excluded.hostname,
    address = excluded.address, runtime = excluded.runtime, agent_version = excluded.agent_version,
    foreign_containers = excluded.foreign_containers, allowed = excluded.allowed, labels = excluded.labels;

-- name: allowed_in
select p.allowed from agents a left join agent_presence p on p.agent_id = a.agent_id
where a.pool = $1 and a.state <> 'DISABLED'
order by a.agent_id;

-- name: heartbeat
-- The row is held, so that a newer connection waits for this transaction or this one sees the newer connection. The
-- clock, not the transaction's time: it may have waited for locks since it began. Noted twice in a second at most.
with current as (select agent_id, connected from agent_presence where agent_id = $1 and session = $2 for no key update),
noted as (
    update agent_presence p set last_seen_at = clock_timestamp(), connected = true
    from current
    where p.agent_id = current.agent_id
      and (not p.connected or p.last_seen_at < clock_timestamp() - interval '0.5 seconds'))
select agent_id, not connected as is_back from current;

-- name: heartbeats
-- The same of many at once; of rows that somebody else holds nothing is noted, and nothing said.
with heard as (select * from unnest($1::text[], $2::bigint[]) as h (agent_id, session)),
held as (
    select agent_id, session, connected from agent_presence where agent_id = any($1::text[])
    order by agent_id for no key update skip locked),
noted as (
    update agent_presence p set last_seen_at = clock_timestamp(), connected = true
    from held join heard using (agent_id, session)
    where p.agent_id = held.agent_id
      and (not p.connected or p.last_seen_at < clock_timestamp() - interval '0.5 seconds'))
-- Whoever is back is told in the same statement ($3: the channel): there is no transaction around it.
select heard.agent_id, heard.session, heard.session = held.session as current,
       case when heard.session = held.session and not held.connected
            then pg_notify($3, 'agent:' || heard.agent_id)::text || pg_notify($3, 'scheduling:')::text end as told
from heard join held using (agent_id);

-- name: close_unheard
-- Whose connection has ended without anybody who could write that: the master was killed, or the database was away.
with unheard as (
    select agent_id from agent_presence
    where connected and last_seen_at < clock_timestamp() - make_interval(secs => $1)
    order by agent_id for no key update skip locked)
update agent_presence p set connected = false from unheard where p.agent_id = unheard.agent_id returning p.agent_id;

-- name: disconnected
-- Only the newest connection can say that the agent has left.
update agent_presence set connected = false, last_seen_at = case when $3 then last_seen_at else clock_timestamp() end
where agent_id = $1 and session = $2;

-- name: set_state
update agents
set state = $2, reason = $3, rests_until = now() + make_interval(secs => $4), version = version + 1, revision = revision + 1
where agent_id = $1 returning agent_id;

-- name: rested
-- Those that were taken out by themselves long enough ago, whose rows are held.
select agent_id from agents where rests_until <= now() order by agent_id for no key update skip locked;

-- name: end_rests
update agents set state = 'ENABLED', reason = '', rests_until = null, version = version + 1, revision = revision + 1
where agent_id = any($1::text[]);

-- name: takes_work
-- Whose row is held.
select state = 'ENABLED' from agents where agent_id = $1 for no key update;

-- name: setback_note
-- One at most: what was begun before the last one failed, or together, failed with it.
insert into agent_setbacks (agent_id, container_id, owner_id, reason)
select $1, c.container_id, j.owner_id, n.reason
from unnest($2::text[], $3::text[]) as n (container_id, reason)
join containers c on c.container_id = n.container_id
join allocations a on a.allocation_id = c.allocation_id
join tasks t on t.task_id = a.task_id
join jobs j on j.job_id = t.job_id
where c.created_at > coalesce((select max(ended_at) from agent_setbacks where agent_id = $1), to_timestamp(0))
order by c.created_at desc, c.container_id limit 1
on conflict (agent_id, container_id) do nothing;

-- name: setbacks_of
select s.owner_id, u.admin as by_admin, s.reason
from agent_setbacks s join users u on u.id = s.owner_id
where s.agent_id = $1 and s.ended_at > now() - make_interval(secs => $2) order by s.ended_at;

-- name: others_start
-- Whether on another agent of the pool that takes work something runs that began after the first setback did not.
select exists (
    select 1 from agents a
    join agents o on o.pool = a.pool and o.agent_id <> a.agent_id and o.state = 'ENABLED'
    join agent_presence p on p.agent_id = o.agent_id and p.connected
    join containers c on c.agent_id = o.agent_id and c.gone_at is null
    where a.agent_id = $1
      and c.started_at > (select min(s.ended_at) from agent_setbacks s
                          where s.agent_id = $1 and s.ended_at > now() - make_interval(secs => $2)));

-- name: setbacks_forget
delete from agent_setbacks where agent_id = $1;

-- name: scheduled
select a.agent_id, a.pool, a.state, coalesce(p.connected, false) as connected, p.labels,
       exists (select 1 from machines m where m.machine_id = a.agent_id) as rented,
       coalesce((select json_agg(json_build_object('id', s.slot_id, 'kind', s.kind, 'name', s.name, 'memory', s.memory)
                                 order by s.slot_id)
                 from agent_slots s
                 where s.agent_id = a.agent_id and s.present and s.enabled and s.fault = ''), '[]'::json) as slots
from agents a left join agent_presence p on p.agent_id = a.agent_id

-- name: for_scheduling
{{scheduled}};

-- name: for_scheduling_of
{{scheduled}}
where a.agent_id = any($1::text[]);

-- name: silent
-- Agents that hold containers and were silent for as long as is waited for those of their pool ($1, $2), of others for $3.
select a.agent_id, w.wait_s, extract(epoch from now() - tenax_silent_since(p.last_seen_at, p.tasks_heard_at, w.wait_s))::float8 as seconds
from agents a
join agent_presence p on p.agent_id = a.agent_id
cross join lateral (
    select coalesce((select n.wait_s from unnest($1::text[], $2::float8[]) n (pool, wait_s) where n.pool = a.pool), $3) as wait_s) w
where p.last_seen_at < now() - make_interval(secs => w.wait_s)
  and tenax_silent_since(p.last_seen_at, p.tasks_heard_at, w.wait_s) < now() - make_interval(secs => w.wait_s)
  and exists (select 1 from containers c where c.agent_id = a.agent_id and c.state <> 'TERMINATED');

-- name: silent_since
-- The row is held: a sign of life is noted before this is asked, or after what follows from it. An agent that never came
-- has always been silent.
with held as (select last_seen_at, tasks_heard_at from agent_presence where agent_id = $1 for no key update)
select extract(epoch from coalesce((select last_seen_at from held), to_timestamp(0)))::float8
where $2::float8 = 0 or clock_timestamp() > make_interval(secs => $2)
    + coalesce((select tenax_silent_since(last_seen_at, tasks_heard_at, $2) from held), to_timestamp(0));

-- name: asked_for_life
-- Attempts that run on one agent alone, which has been silent for $1 seconds, and are to run on.
select c.allocation_id
from agent_presence p join containers c on c.agent_id = p.agent_id
where p.last_seen_at < now() - make_interval(secs => $1) and {{speaks}}
order by c.allocation_id;

-- name: tasks_heard
update agent_presence p set tasks_heard_at = clock_timestamp()
from containers c
where c.allocation_id = $1 and p.agent_id = c.agent_id and {{speaks}};

-- name: speaks
-- An attempt speaks for the agent of all its members, unless somebody waits for the end of something there: that is not to
-- take longer.
c.state <> 'TERMINATED'
and not exists (select 1 from containers o where o.allocation_id = c.allocation_id and o.agent_id <> c.agent_id)
and not exists (
    select 1 from containers o join allocations oa on oa.allocation_id = o.allocation_id
    where o.agent_id = p.agent_id and o.state <> 'TERMINATED' and (o.want <> 'RUN' or oa.state = 'TERMINATING'))

-- name: live_containers
select container_id from containers where agent_id = $1 and state <> 'TERMINATED' order by allocation_id, rank;

-- name: hold
-- The agents' rows, so that a placement there waits for what is decided now, or is seen by it.
select agent_id from agents where agent_id = any($1::text[]) order by agent_id for no key update;

-- name: holds_containers
-- Known here or not, of this cluster.
select exists (select 1 from containers where agent_id = $1 and gone_at is null)
    or exists (
        select 1 from agent_presence p, jsonb_array_elements(p.foreign_containers) f
        where p.agent_id = $1 and f->>'cluster_id' = (select cluster_id::text from cluster)
          and f->>'state' is distinct from 'exited');

-- name: foreign_ended
-- Of those that this database does not know: these have ended. Some may be none of them.
update agent_presence set foreign_containers = (
    select coalesce(jsonb_agg(
        case when f->>'container_id' = any($2::text[]) then f || '{"state": "exited"}' else f end), '[]'::jsonb)
    from jsonb_array_elements(foreign_containers) f)
where agent_id = $1 and foreign_containers <> '[]'::jsonb;

-- name: set_slot
update agent_slots set enabled = $3, draining = $4 where agent_id = $1 and slot_id = $2 and present returning slot_id;

-- name: on_disabled
-- Attempts with a live member on a disabled agent or slot that does not drain. Of one agent, or of all.
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
-- Whether anything that a placement has just taken was disabled, or is not there any more, or its job was moved elsewhere.
select exists (select 1 from unnest($1::text[]) as taken (agent_id)
               where not exists (select 1 from agents a where a.agent_id = taken.agent_id and a.state = 'ENABLED'))
    or exists (select 1 from containers c join slots_in_use u on u.container_id = c.container_id
               join agent_slots s on s.agent_id = u.agent_id and s.slot_id = u.slot_id
               where c.allocation_id = $2 and not (s.enabled and s.fault = ''))
    or exists (select 1 from allocations al join tasks t on t.task_id = al.task_id join jobs j on j.job_id = t.job_id
               join agents a on a.agent_id = any($1) where al.allocation_id = $2 and a.pool <> j.pool);

-- name: agent_standing
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

-- name: views
select a.agent_id, a.pool, a.state, case when a.state = 'DRAINING' then a.reason else '' end as reason, a.created_at, coalesce(p.connected, false) as connected, p.last_seen_at,
       coalesce(p.hostname, '') as hostname, coalesce(p.address, '') as address, coalesce(p.runtime, '') as runtime,
       coalesce(p.agent_version, '') as agent_version, coalesce(p.foreign_containers, '[]'::jsonb) as foreign_containers,
       coalesce(p.labels, '{}'::jsonb) as labels, a.notice, a.notice_until
from agents a left join agent_presence p on p.agent_id = a.agent_id
where $1::text is null or a.agent_id = $1;

-- name: slots
select s.agent_id, s.slot_id, s.kind, s.name, s.uuid, s.memory, s.fault, s.enabled, s.draining, u.container_id
from agent_slots s left join slots_in_use u on u.agent_id = s.agent_id and u.slot_id = s.slot_id
where s.present and ($1::text is null or s.agent_id = $1)
order by s.agent_id, s.slot_id;

-- name: containers
-- With whose each is, and what for.
select c.container_id, c.allocation_id, c.agent_id, c.slots, c.state, t.task_id, t.trial_id, tr.experiment_id,
       u.username, coalesce(d.name, l.description, '') as description
from containers c
join allocations a on a.allocation_id = c.allocation_id
join tasks t on t.task_id = a.task_id
join jobs j on j.job_id = t.job_id
join users u on u.id = j.owner_id
left join trials tr on tr.id = t.trial_id
left join experiment_documents d on d.experiment_id = tr.experiment_id
left join launched_tasks l on l.task_id = t.task_id
where c.gone_at is null and ($1::text is null or c.agent_id = $1)
order by c.allocation_id, c.rank;

-- name: pool_of
select pool from agents where agent_id = $1;

-- name: hold_notice
select notice from agents where agent_id = $1 for update;

-- name: set_notice
-- It drains for it, once; a reason of an earlier notice, or of failed starts, gives way to this one.
update agents
set reason = case when (state = 'ENABLED' and notice <> $2)
                    or (state = 'DRAINING' and (rests_until is not null or (notice <> '' and reason = notice)))
                  then $2 else reason end,
    state = case when state = 'ENABLED' and notice <> $2 then 'DRAINING' else state end,
    rests_until = case when state = 'DRAINING' then null else rests_until end,
    notice = $2, notice_plan = $3, notice_until = now() + make_interval(secs => $4), version = version + 1
where agent_id = $1 returning agent_id;

-- name: clear_notice
update agents
set reason = case when state = 'DRAINING' and reason = notice then '' else reason end,
    state = case when state = 'DRAINING' and reason = notice then 'ENABLED' else state end,
    notice = '', notice_plan = '', notice_until = null, version = version + 1
where agent_id = $1 and notice <> '' returning agent_id;

-- name: noticed_attempts
select x.allocation_id, x.task_id, x.ready_at is not null as ready, x.preemption = 'NONE' as is_new,
       (select k.upload_s from checkpoints k where k.trial_id = t.trial_id and k.upload_s is not null
        order by k.reported_at desc limit 1) as saved_in_s
from allocations x join tasks t on t.task_id = x.task_id
where x.state not in ('PENDING', 'TERMINATED')
  and exists (select 1 from containers c
              where c.allocation_id = x.allocation_id and c.agent_id = $1 and c.state <> 'TERMINATED')
order by x.allocation_id;
