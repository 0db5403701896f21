-- Collecting checkpoints. What is to go is decided first (a row), then its files are deleted, then that is recorded: a
-- master that is killed in between finds the row again. What was decided is not undone, as files may be gone by then.

-- Its files are to be deleted: nothing may start from it any more.
alter table checkpoints add column doomed boolean not null default false;

-- Uploads that began, as their task announced them. One that never becomes a checkpoint leaves files under an id that no
-- other row names. The row stays when the files are gone, so that a report that comes late is refused.
create table checkpoint_uploads (
    uuid text primary key,
    task_id text not null references tasks (task_id) on delete cascade,
    allocation_id text not null references allocations (allocation_id) on delete cascade,
    storage_id bigint not null references storage_backends (id),
    announced_at timestamptz not null default now(),
    collected_at timestamptz
);
create index checkpoint_uploads_open on checkpoint_uploads (allocation_id) where collected_at is null;
create index checkpoint_uploads_task on checkpoint_uploads (task_id);

create table removals (
    uuid text primary key,
    checkpoint text references checkpoints (uuid) on delete cascade,
    upload text references checkpoint_uploads (uuid) on delete cascade,
    -- Which of its files.
    globs text[] not null default '{**/*}' check (cardinality(globs) > 0),
    -- In words: who asked, or which rule.
    reason text not null,
    asked_at timestamptz not null default now(),
    -- Files may be gone from here on.
    begun_at timestamptz,
    tries integer not null default 0 check (tries >= 0),
    retry_at timestamptz not null default now(),
    -- Why it did not work the last time.
    failure text not null default '',
    -- Out of the master's reach: a task on an agent is to do it; this one is at it.
    afar boolean not null default false,
    task_id text references tasks (task_id) on delete set null,
    constraint one_of_both check (num_nonnulls(checkpoint, upload) = 1 and uuid = coalesce(checkpoint, upload))
);
create index removals_retry on removals (retry_at);
create index removals_task on removals (task_id) where task_id is not null;
create index removals_checkpoint on removals (checkpoint);
create index removals_upload on removals (upload);

-- Experiments whose checkpoints must be looked at; the stamp is raised each time, so that nothing is overlooked.
create table garbage_due (
    experiment_id bigint primary key references experiments (id) on delete cascade,
    stamp bigint not null default 1,
    -- Somebody has asked for it.
    asked boolean not null default false
);
