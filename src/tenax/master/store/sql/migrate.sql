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
