-- Masters of the cluster. Whether one is there tells the session lock on its holder's name, which its leases bear, too.
create table masters (
    master_id text primary key,
    holder text not null,
    machine text not null,
    -- Where it listens: http://first:8080.
    address text not null,
    version text not null,
    roles text[] not null,
    -- Of each setting that masters must agree on, a digest under the cluster's secret.
    settings jsonb not null check (jsonb_typeof(settings) = 'object'),
    started_at timestamptz not null default now()
);
