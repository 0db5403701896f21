-- The devices of each member of an attempt, as the member itself saw them. Telemetry.
create table allocation_accelerators (
    container_id text primary key references containers (container_id) on delete cascade,
    allocation_id text not null references allocations (allocation_id) on delete cascade,
    -- {"accelerator_type", "accelerator_uuids", "node_name"}
    data jsonb not null,
    reported_at timestamptz not null default now()
);
create index allocation_accelerators_allocation on allocation_accelerators (allocation_id);

create index trials_warm_start on trials (warm_start_checkpoint) where warm_start_checkpoint is not null;
