-- name: acquire
-- All that can be had, at once. What a transaction under way has checked is passed over, so that one loop's does not
-- hold up the others. Names of sessions are tried in common: of many who try, none is in the way of another.
with free as materialized (
    select loop from leases
    where loop = any ($1::text[]) and (
        expires_at <= clock_timestamp()
        or holder = $2
        or (starts_with(holder, $4) and pg_try_advisory_xact_lock_shared(hashtextextended(holder, 0)))
    )
    for update skip locked
), taken as (
    update leases set epoch = epoch + 1, holder = $2, expires_at = clock_timestamp() + make_interval(secs => $3)
    from free where leases.loop = free.loop
    returning leases.loop, leases.epoch
), made as (
    insert into leases (loop, epoch, holder, expires_at)
    select name, 1, $2, clock_timestamp() + make_interval(secs => $3) from unnest($1::text[]) as name
    where not exists (select from leases where loop = name)
    on conflict (loop) do nothing
    returning loop, epoch
)
select loop, epoch from taken union all select loop, epoch from made;

-- name: renew
-- Not a word of the key, so that it does not wait for those who have checked.
update leases set expires_at = clock_timestamp() + make_interval(secs => $3), holder = $4
from unnest($1::text[], $2::bigint[]) as mine (loop, epoch)
where leases.loop = mine.loop and leases.epoch = mine.epoch
returning leases.loop;

-- name: give_up
update leases set expires_at = clock_timestamp() where loop = $1 and epoch = $2 returning loop;

-- name: check
-- The advisory lock says whose transaction it is, to those who would take over: of locks of rows PostgreSQL does not.
select epoch, pg_advisory_xact_lock_shared({{checked}}) from leases
where loop = $1 and epoch = $2 for key share;

-- name: checked
hashtextextended('lease:' || leases.loop, 0)

-- name: end_late
-- A process that was stopped in the middle of a transaction keeps its locks, for ever if it was stopped in the middle of
-- what it said: no time-out of PostgreSQL's ends a backend that waits for the rest of a message.
select pg_terminate_backend(held.pid)
from leases
join pg_locks held on held.locktype = 'advisory' and held.granted and held.objsubid = 1
    and held.database = (select oid from pg_database where datname = current_database())
    and (held.classid::bigint << 32) | held.objid::bigint = {{checked}}
where leases.loop = any ($1::text[]) and leases.expires_at <= clock_timestamp() and held.pid <> pg_backend_pid();

-- name: hold_name
select pg_advisory_lock(hashtextextended($1, 0));

-- name: lock
select pg_advisory_lock($1);

-- name: unlock
select pg_advisory_unlock($1);

-- name: try_lock
select pg_try_advisory_lock($1);

-- name: create_tables
create table if not exists schema_migrations (
    name text primary key,
    checksum text not null,
    applied_at timestamptz not null default now()
);
-- How far a post migration is that has not been recorded above.
create table if not exists schema_migration_steps (
    migration text not null,
    step integer not null check (step >= 0),
    -- Of what is done in batches.
    rows bigint not null default 0 check (rows >= 0),
    done_at timestamptz,
    primary key (migration, step)
);

-- name: steps_of
select step, rows, done_at is not null as done from schema_migration_steps where migration = $1;

-- name: note_step
insert into schema_migration_steps (migration, step, rows, done_at) values ($1, $2, $3, case when $4 then now() end)
on conflict (migration, step) do update
set rows = schema_migration_steps.rows + excluded.rows, done_at = excluded.done_at;

-- name: forget_steps
delete from schema_migration_steps where migration = $1;

-- name: wait_shortly_for_locks
select set_config('lock_timeout', '2s', true);

-- name: broken_indexes
-- What a build of an index outside of a transaction leaves when it is broken off.
select format('drop index concurrently %I.%I', n.nspname, c.relname)
from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
where not i.indisvalid and c.relkind = 'i' and n.nspname = current_schema();

-- name: older_masters
-- Masters say in the name of their sessions up to which number they know migrations; older ones say none.
select distinct coalesce(host(client_addr), 'this machine') from pg_stat_activity
where datname = current_database() and application_name ~ '^tenax-master\M'
    and coalesce(substring(application_name from '^tenax-master/(\d+)-')::bigint, 0) < $1;

-- name: applied
select name, checksum from schema_migrations;

-- name: record
insert into schema_migrations (name, checksum) values ($1, $2);

-- name: raise_revisions
-- Sent with the commit, $1 being names that need no quoting: nobody waits for these rows longer than a commit takes.
-- Locked in order first: an update alone takes its rows as they come.
select agent_id from agents where agent_id = any($1::text[]) order by agent_id for no key update;
update agents set revision = revision + 1 where agent_id = any($1::text[]);

-- name: notify
select pg_notify('tenax', $1);

-- name: probe
select 1;

-- name: at_work
-- Of these processes of the server, those that have something to do, had until just now, or do not say; and whether one
-- is in the middle of a statement of which the rest has not come.
select pid, coalesce(
    state = 'active' and wait_event = 'ClientRead' and state_change <= clock_timestamp() - make_interval(secs => $2),
    false
) as waits_for_rest
from pg_stat_activity
where pid = any ($1::int[])
    and (state is null or state not like 'idle%' or state_change > clock_timestamp() - make_interval(secs => $2));

-- name: end_half_sent
-- A process that was stopped, or cut off, between the parts of a statement keeps its locks for ever: neither the limit
-- of a statement nor that of an idle transaction ends a backend that waits for the rest of one, or for its answer to be
-- taken. Only those that hold up another: a value may take long to arrive. Of masters, who ask again what was cut.
select pg_terminate_backend(half.pid) from pg_stat_activity half
where half.pid in (
        select unnest(pg_blocking_pids(held_up.pid)) from pg_stat_activity held_up
        where held_up.datname = current_database() and held_up.wait_event_type = 'Lock'
            and held_up.state_change <= clock_timestamp() - make_interval(secs => $1)
    )
    and half.datname = current_database() and half.usename = current_user and half.application_name ~ '^tenax'
    and half.state = 'active' and half.wait_event in ('ClientRead', 'ClientWrite')
    and half.state_change <= clock_timestamp() - make_interval(secs => $2);

-- name: opened
-- Asked for: what stands between, such as a pool of connections, says another process at the beginning.
select pg_backend_pid() as pid,
       format('%s/%s/%s', (select system_identifier from pg_control_system()),
              (select timeline_id from pg_control_checkpoint()),
              (select oid from pg_database where datname = current_database())) as identity;

-- name: adopt_another
-- Of several masters that begin, one raises the generation.
update cluster set generation = generation + 1, database_identity = $1, restored_at = now() where database_identity <> $1
returning generation;

-- name: adopt_first
update cluster set database_identity = $1 where database_identity is null;

-- name: answer_of
select digest, answer from idempotency_keys where user_id = $1 and key = $2;

-- name: begin_request
insert into idempotency_keys (user_id, key, digest) values ($1, $2, $3)
on conflict (user_id, key) do nothing
returning true;

-- name: finish_request
update idempotency_keys set answer = $3 where user_id = $1 and key = $2;

-- name: any_request_due
select exists (select from idempotency_keys where created_at < now() - make_interval(secs => $1));

-- name: forget_requests
delete from idempotency_keys where created_at < now() - make_interval(secs => $1);
