-- Telemetry: metrics, logs, progress, spools. Without versions; never part of a decision about state.
-- What grows without end is partitioned by the month in which its trial or task was made (202611), so that one thing
-- lies in one partition and an old month can be dropped whole. No foreign keys into it: deleting is explicit.

-- Makes the partition of a month. Two that want it at once wait for one another.
create function tenax_add_month(parent text, month integer) returns void language plpgsql as $$
declare
    part text := format('%s_%s', parent, month);
begin
    perform pg_advisory_xact_lock(hashtextextended('tenax_add_month', 0));
    if to_regclass(part) is null then
        -- Rows come and go all the time: swept early, so that room is used again.
        execute format(
            'create table %I partition of %I for values from (%s) to (%s) with (autovacuum_vacuum_scale_factor = 0.05)',
            part, parent, month, month + 1);
    end if;
end
$$;

-- What a script said last, and what its visible metrics come to.
create table trial_telemetry (
    trial_id bigint primary key references trials (id) on delete cascade,
    progress double precision check (progress between 0 and 1),
    runner_state text not null default '',
    -- {"step", "run_id", "at" (RFC 3339), "metrics"}: the visible validation with the searcher's metric that has the highest
    -- step, and the one with the best value.
    latest_validation jsonb,
    best_validation jsonb,
    -- The searcher's metric of best_validation, as reported.
    best_metric double precision,
    reported_at timestamptz not null default now()
) with (fillfactor = 50);

-- One row per trial and group of metrics: where its reports end, and what they come to.
create table metric_groups (
    trial_id bigint not null,
    grp text not null check (grp <> ''),
    month integer not null,
    -- The newest run that reported here, and its highest step (-1: none, or a group without steps).
    run_id integer not null,
    last_step bigint not null,
    -- Reports are numbered in the order of arrival.
    next_ord bigint not null,
    -- Those before it are packed.
    sealed_ord bigint not null default 0,
    -- The highest step of the visible reports: the newest of them is there.
    newest_step bigint not null,
    -- JSON: {metric: {"type", "last", "count", "sum", "min", "max"}} over the visible reports.
    summary bytea not null,
    reported_at timestamptz not null default now(),
    primary key (trial_id, grp),
    check (sealed_ord <= next_ord)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
create index metric_groups_unsealed on metric_groups (trial_id, grp) where sealed_ord < next_ord;

-- Reports as they came, some of one group and run per row.
create table metric_tail (
    month integer not null,
    trial_id bigint not null,
    grp text not null,
    first_ord bigint not null,
    run_id integer not null,
    -- -1: without a step.
    steps bigint[] not null,
    -- Microseconds since 1970, as told by the reporter.
    times bigint[] not null,
    -- One JSON object per line, in the order of steps.
    bodies bytea not null,
    -- The same for batch metrics (null where a report has none); null: none has.
    batches bytea,
    primary key (month, trial_id, grp, first_ord),
    check (cardinality(steps) = cardinality(times))
) partition by range (month);

-- Packed reports of one group and run: what they have in common ...
create table metric_blocks (
    month integer not null,
    trial_id bigint not null,
    grp text not null,
    first_ord bigint not null,
    run_id integer not null,
    reports integer not null check (reports > 0),
    first_step bigint not null,
    last_step bigint not null,
    steps bytea not null,
    times bytea not null,
    batches bytea,
    primary key (month, trial_id, grp, first_ord)
) partition by range (month);

-- ... and each of their metrics. Never changed: a late report, or one that adds to an earlier one, is a new row above.
create table metric_chunks (
    month integer not null,
    trial_id bigint not null,
    grp text not null,
    metric text not null,
    first_ord bigint not null,
    -- Which reports of the block have this metric; null: all.
    present bytea,
    data bytea not null,
    primary key (month, trial_id, grp, metric, first_ord)
) partition by range (month);

-- A newer run that went on from an earlier step: reports of older runs at or after ``step`` are not visible.
create table metric_cuts (
    trial_id bigint not null,
    run_id integer not null,
    kind text not null check (kind in ('training', 'validation', 'other')),
    step bigint not null,
    primary key (trial_id, run_id, kind)
);

-- How far the spool of a process in a container has been taken in.
create table spool_streams (
    container_id text not null,
    stream text not null,
    allocation_id text not null references allocations (allocation_id) on delete cascade,
    acked bigint not null check (acked >= 0),
    primary key (container_id, stream)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
create index spool_streams_allocation on spool_streams (allocation_id);

-- Lines that were refused for good: a repeated question gets the same answer.
create table spool_refusals (
    container_id text not null,
    stream text not null,
    n bigint not null,
    message text not null,
    fatal boolean not null,
    primary key (container_id, stream, n),
    foreign key (container_id, stream) references spool_streams (container_id, stream) on delete cascade
);

-- Output of tasks. Lines of a task are numbered in the order of arrival.
create table log_tasks (
    task_id text primary key references tasks (task_id) on delete cascade,
    month integer not null,
    next_line bigint not null default 0,
    -- Chunks of lines before it are as large as they get; how many come after it.
    joined_line bigint not null default 0,
    loose_chunks integer not null default 0
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- How far the output of a container has been taken in, and the beginning of a line whose end has not come yet.
create table log_streams (
    container_id text not null,
    stream text not null,
    task_id text not null references log_tasks (task_id) on delete cascade,
    next_offset bigint not null check (next_offset >= 0),
    carry bytea not null default '',
    primary key (container_id, stream)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- Compressed lines; searched by scanning.
create table log_chunks (
    month integer not null,
    task_id text not null,
    first_line bigint not null,
    lines integer not null check (lines > 0),
    first_at timestamptz not null,
    last_at timestamptz not null,
    -- One bit per level that occurs.
    levels integer not null,
    -- Who spoke: [{"allocation_id", "container_id", "agent_id", "source", "stdtype"}].
    origins jsonb not null,
    -- Per line: time, level, rank, number of the origin.
    meta bytea not null,
    body bytea not null,
    primary key (month, task_id, first_line)
) partition by range (month);

-- What is compressed is stored as it is.
alter table metric_tail alter column bodies set storage external;
alter table metric_blocks alter column steps set storage external, alter column times set storage external;
alter table metric_chunks alter column data set storage external;
alter table log_chunks alter column body set storage external, alter column meta set storage external;
