-- Tasks that no search asked for (commands, generic tasks, the cluster's own), and templates of configurations.
-- What is run stands in tasks.spec, written once: {"v", "config", "files", "env"}. A launched task is locked where a trial
-- is: before its allocation. Owner and priority are those of its job.

create table launched_tasks (
    task_id text primary key references tasks (task_id) on delete cascade,
    -- A task outlives its workspace, as something uncategorized.
    workspace_id bigint not null default 1 references workspaces (id) on delete set default,
    project_id bigint references projects (id) on delete set null,
    parent_id text references launched_tasks (task_id) on delete set null,
    forked_from text references launched_tasks (task_id) on delete set null,
    description text not null default '',
    state text not null default 'ACTIVE' check (state in (
        'ACTIVE', 'STOPPING_PAUSED', 'PAUSED', 'STOPPING_CANCELED', 'COMPLETED', 'CANCELED', 'ERROR')),
    -- In words, why it is in this state.
    reason text not null default '',
    version bigint not null default 1,
    -- Number of the newest attempt; 0 before the first.
    run_id integer not null default 0 check (run_id >= 0),
    -- It may be asked to leave its slots, and goes on later.
    pausable boolean not null default false,
    context_hash text references contexts (hash),
    ended_at timestamptz,
    constraint ended_when_terminal check ((ended_at is not null) = (state in ('COMPLETED', 'CANCELED', 'ERROR'))),
    constraint paused_if_pausable check (pausable or state not in ('STOPPING_PAUSED', 'PAUSED')),
    constraint not_its_own_parent check (parent_id <> task_id)
);
create index launched_tasks_live on launched_tasks (task_id) where ended_at is null;
create index launched_tasks_parent on launched_tasks (parent_id) where parent_id is not null;
create index launched_tasks_context on launched_tasks (context_hash) where context_hash is not null;
create index tasks_kind on tasks (kind, created_at) where kind <> 'TRIAL';

create table templates (
    -- Unique in the whole cluster, whatever its workspace.
    name text primary key check (name <> ''),
    workspace_id bigint not null references workspaces (id) on delete cascade,
    owner_id bigint not null references users (id),
    -- As written, partial.
    config jsonb not null check (jsonb_typeof(config) = 'object'),
    version bigint not null default 1,
    created_at timestamptz not null default now(),
    modified_at timestamptz not null default now()
);
create index templates_workspace on templates (workspace_id);
