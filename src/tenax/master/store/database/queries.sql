-- name: lock_lease
-- Locked, so that of two that find it free one waits and then sees what the other made of it.
select holder, expires_at <= clock_timestamp() as expired from leases where loop = $1 for update;

-- name: create
insert into leases (loop, epoch, holder, expires_at)
values ($1, 1, $2, clock_timestamp() + make_interval(secs => $3))
on conflict (loop) do nothing
returning epoch;

-- name: take_over
update leases set epoch = epoch + 1, holder = $2, expires_at = clock_timestamp() + make_interval(secs => $3)
where loop = $1
returning epoch;

-- name: renew
update leases set expires_at = clock_timestamp() + make_interval(secs => $3)
where loop = $1 and epoch = $2
returning epoch;

-- name: check
select epoch from leases where loop = $1 and epoch = $2 for share;

-- name: try_name
select pg_try_advisory_xact_lock(hashtextextended($1, 0));

-- name: hold_name
select pg_advisory_lock(hashtextextended($1, 0));

-- name: lock
select pg_advisory_lock($1);

-- name: unlock
select pg_advisory_unlock($1);

-- name: create_table
create table if not exists schema_migrations (
    name text primary key,
    checksum text not null,
    applied_at timestamptz not null default now()
);

-- name: applied
select name, checksum from schema_migrations;

-- name: record
insert into schema_migrations (name, checksum) values ($1, $2);

-- name: raise_revisions
-- Sent with the commit, $1 being names that need no quoting: nobody waits for these rows longer than a commit takes.
-- Locked in order: an update alone takes its rows as they come.
with ordered as (select agent_id from agents where agent_id = any($1::text[]) order by agent_id for no key update)
update agents set revision = revision + 1 from ordered where agents.agent_id = ordered.agent_id;

-- name: notify
select pg_notify('tenax', $1);

-- name: probe
select 1;
