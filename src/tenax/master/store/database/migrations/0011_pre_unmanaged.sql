-- Experiments that are trained elsewhere and only report here; and what a trial was made from.

alter table experiments add column if not exists external_id text;
alter table trials add column if not exists external_id text;
-- Whoever says the name again means the same thing.
create unique index if not exists experiments_external on experiments (external_id) where external_id is not null;

-- Telemetry of the trials of unmanaged experiments.
create table unmanaged_trials (
    trial_id bigint primary key references trials (id) on delete cascade,
    -- The newest sign of life besides metrics.
    heard_at timestamptz not null default now(),
    -- It was given up, and counts again when it is heard of.
    lost boolean not null default false
);

-- Which checkpoint, or version of a model, a trial uses or goes on from.
create table trial_sources (
    trial_id bigint not null references trials (id) on delete cascade,
    checkpoint_uuid text not null references checkpoints (uuid) on delete cascade,
    kind text not null check (kind in ('INFERENCE', 'FINE_TUNING')),
    -- Of the model registry, where it was named by a version there.
    model_id bigint,
    model_version integer,
    created_at timestamptz not null default now(),
    primary key (trial_id, checkpoint_uuid),
    check ((model_id is null) = (model_version is null))
);
create index trial_sources_checkpoint on trial_sources (checkpoint_uuid);

-- What a task tells of its service.
alter table allocations
    -- It runs, and its service waits for something.
    add column waiting_since timestamptz,
    -- Where the task says that it is reached; empty: at its agent.
    add column proxy_address text not null default '';
