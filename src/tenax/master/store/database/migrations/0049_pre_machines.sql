-- Machines that are rented, each from before it is asked for until nothing is left of it.
create table machines (
    -- Also that of its agent, the provider's key of the request, and the mark on the machine and its disks.
    machine_id text primary key,
    pool text not null,
    provider text not null,
    region text not null,
    -- Of the provider's API; empty: the usual one.
    endpoint text not null default '',
    instance_type text not null,
    slots integer not null check (slots >= 0),
    state text not null check (state in ('PLANNED', 'ASKED', 'STARTING', 'JOINED', 'LEAVING', 'ENDING', 'GONE', 'FAILED')),
    -- Allocations that it was rented for.
    wanted_by text[] not null default '{}',
    -- What the provider calls it; empty: nobody knows yet.
    provider_id text not null default '',
    zone text not null default '',
    -- sha256 of the token that lets its agent in; none: it is spent.
    token_hash bytea,
    -- Why it is as it is, for people.
    story text not null default '',
    planned_at timestamptz not null default now(),
    joined_at timestamptz,
    -- When it came to its state, or was last asked for or to end.
    changed_at timestamptz not null default now(),
    -- How often the provider was asked for it, and to end it.
    sent integer not null default 0,
    end_sent integer not null default 0,
    ended_at timestamptz,
    version bigint not null default 1,
    constraint machines_end check ((state in ('GONE', 'FAILED')) = (ended_at is not null)),
    constraint machines_are_known check (state in ('PLANNED', 'ASKED', 'GONE', 'FAILED') or provider_id <> '')
);
create index machines_open on machines (pool) where ended_at is null;
create index machines_of_pool on machines (pool, planned_at desc);
create unique index machines_known on machines (provider, region, endpoint, provider_id) where provider_id <> '' and ended_at is null;
create unique index machines_token on machines (token_hash);
-- Since when a machine is idle: ids of machines begin so. Empty where nothing is rented.
create index containers_of_machines on containers (agent_id, gone_at) where agent_id like 'm-%';
