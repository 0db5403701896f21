-- What the operator of an agent's machine lets tasks have of it, as it said when it connected; null: it does not say.
alter table agent_presence add column allowed jsonb;

-- Failed logins of late, by a hash of name and address: all masters count together.
create table failed_logins (
    key bytea primary key check (octet_length(key) = 32),
    count integer not null default 0,
    last_at timestamptz not null default now()
);
create index failed_logins_last on failed_logins (last_at);
