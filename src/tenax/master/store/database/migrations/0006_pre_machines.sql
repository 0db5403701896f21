-- Machines and the master's own: who may use a pool, what slots were used for, the cluster's message, how long output is
-- kept, and agents that are removed for good.

-- A pool with rows here can be used by these workspaces alone.
create table pool_bindings (
    pool text not null check (pool <> ''),
    workspace_id bigint not null references workspaces (id) on delete cascade,
    bound_at timestamptz not null default now(),
    primary key (pool, workspace_id)
);
create index pool_bindings_workspace on pool_bindings (workspace_id);

-- What slots were used for: a row per member of an attempt, begun when it is placed and ended with it. It outlives
-- experiments, tasks, agents and workspaces: the accounts of a month do not change when something is deleted.
create table usage (
    container_id text primary key,
    allocation_id text not null,
    rank integer not null check (rank >= 0),
    task_id text not null,
    kind text not null,
    experiment_id bigint,
    user_id bigint not null,
    username text not null,
    workspace_id bigint,
    workspace_name text not null default '',
    labels text[] not null default '{}',
    pool text not null,
    agent_id text not null,
    slots integer not null check (slots >= 0),
    requested_at timestamptz not null,
    started_at timestamptz not null,
    ended_at timestamptz,
    check (ended_at >= started_at)
);
create index usage_ended on usage (ended_at, started_at);
create index usage_started on usage (started_at, allocation_id);
create index usage_experiment on usage (experiment_id) where experiment_id is not null;

insert into usage (container_id, allocation_id, rank, task_id, kind, experiment_id, user_id, username, workspace_id,
                   workspace_name, labels, pool, agent_id, slots, requested_at, started_at, ended_at)
select c.container_id, c.allocation_id, c.rank, t.task_id, t.kind, e.id, u.id, u.username, w.id, coalesce(w.name, ''),
       coalesce(d.labels, '{}'), j.pool, c.agent_id, cardinality(c.slots), a.requested_at, c.created_at, c.ended_at
from containers c
join allocations a on a.allocation_id = c.allocation_id
join tasks t on t.task_id = a.task_id
join jobs j on j.job_id = t.job_id
join users u on u.id = j.owner_id
left join trials tr on tr.id = t.trial_id
left join experiments e on e.id = tr.experiment_id
left join experiment_documents d on d.experiment_id = e.id
left join projects p on p.id = e.project_id
left join workspaces w on w.id = p.workspace_id;

-- The administrators' message to everyone: one at most.
create table cluster_message (
    only_row boolean primary key default true check (only_row),
    message text not null check (char_length(message) between 1 and 250),
    starts_at timestamptz not null,
    ends_at timestamptz,
    set_by bigint references users (id) on delete set null,
    created_at timestamptz not null default now(),
    check (ends_at > starts_at)
);

-- Days that output is kept after the end of a task; -1: for ever; null: as the next wider says (trial, experiment, its
-- configuration, the master).
alter table experiment_documents add column log_retention_days smallint check (log_retention_days >= -1);
alter table trials add column log_retention_days smallint check (log_retention_days >= -1);

-- When what is done from time to time was done last.
create table chores (
    name text primary key,
    done_at timestamptz not null
);

-- A slot that is turned off, and may be used until what runs on it has ended.
alter table agent_slots add column draining boolean not null default false;
alter table agent_slots add constraint drained_when_off check (not (draining and enabled));

-- Agents that were removed: one that comes back under its name goes on from there, since it does not obey what is older.
create table removed_agents (
    agent_id text primary key,
    revision bigint not null,
    removed_at timestamptz not null default now()
);

-- What is to leave is asked in other ways; a container is ended at once, or not at all.
alter table containers drop constraint containers_want_check;
alter table containers add constraint containers_want_check check (want in ('RUN', 'KILL', 'GONE'));

-- The history of a container names its agent after that agent was removed.
alter table containers drop constraint containers_agent_id_fkey;
