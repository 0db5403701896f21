-- What changed of the cluster as the scheduler sees it, for the loop that keeps it in memory: rows say so themselves,
-- whichever statement and whoever's it was. By transaction, since what began earlier may be committed later. The loop
-- removes what it has read.
create table cluster_changes (
    xid xid8 not null default pg_current_xact_id(),
    -- An attempt whose row or whose containers changed, a job, an agent with its slots.
    kind text not null check (kind in ('allocation', 'job', 'agent')),
    id text not null
);
create index cluster_changes_xid on cluster_changes (xid);

create function tenax_note_allocation() returns trigger language plpgsql as $$
begin
    insert into cluster_changes (kind, id)
    select distinct 'allocation', n.id from unnest(array[old.allocation_id, new.allocation_id]) as n (id) where n.id is not null;
    return null;
end $$;

create function tenax_note_agent() returns trigger language plpgsql as $$
begin
    insert into cluster_changes (kind, id)
    select distinct 'agent', n.id from unnest(array[old.agent_id, new.agent_id]) as n (id) where n.id is not null;
    return null;
end $$;

create function tenax_note_job() returns trigger language plpgsql as $$
begin
    insert into cluster_changes (kind, id)
    select distinct 'job', n.id from unnest(array[old.job_id, new.job_id]) as n (id) where n.id is not null;
    return null;
end $$;

create function tenax_note_tally() returns trigger language plpgsql as $$
begin
    insert into cluster_changes (kind, id) select 'job', e.job_id from experiments e where e.id = new.experiment_id;
    return null;
end $$;

create trigger allocations_note after insert on allocations
    for each row execute function tenax_note_allocation();
create trigger allocations_note_delete after delete on allocations
    for each row when (old.state <> 'TERMINATED') execute function tenax_note_allocation();
-- That it starts and runs makes no difference; that it ends does.
create trigger allocations_note_update after update on allocations
    for each row when (
        (old.task_id, old.run_id, old.slots, old.preemptible, old.single_node, old.blocked_agents, old.constraints,
         old.requested_at, old.assigned_at, old.time_limit_s, old.over_time, old.preemption, old.preemption_reason,
         old.preemption_deadline, old.state = 'PENDING', old.state = 'TERMINATING', old.state = 'TERMINATED')
        is distinct from
        (new.task_id, new.run_id, new.slots, new.preemptible, new.single_node, new.blocked_agents, new.constraints,
         new.requested_at, new.assigned_at, new.time_limit_s, new.over_time, new.preemption, new.preemption_reason,
         new.preemption_deadline, new.state = 'PENDING', new.state = 'TERMINATING', new.state = 'TERMINATED'))
    execute function tenax_note_allocation();

create trigger containers_note after insert on containers
    for each row execute function tenax_note_allocation();
create trigger containers_note_delete after delete on containers
    for each row when (old.gone_at is null) execute function tenax_note_allocation();
create trigger containers_note_update after update on containers
    for each row when ((old.allocation_id, old.rank, old.agent_id, old.slots, old.gone_at is null)
                       is distinct from (new.allocation_id, new.rank, new.agent_id, new.slots, new.gone_at is null))
    execute function tenax_note_allocation();

create trigger jobs_note after update on jobs
    for each row when ((old.pool, old.priority, old.queue_position, old.weight, old.max_slots, old.time_limit_s)
                       is distinct from
                       (new.pool, new.priority, new.queue_position, new.weight, new.max_slots, new.time_limit_s))
    execute function tenax_note_job();
-- Whether a search will ask for more.
create trigger experiment_tallies_note after insert on experiment_tallies
    for each row when (new.expected_trials > new.trials) execute function tenax_note_tally();
create trigger experiment_tallies_note_update after update on experiment_tallies
    for each row when ((old.expected_trials > old.trials) is distinct from (new.expected_trials > new.trials))
    execute function tenax_note_tally();

create trigger agents_note after insert or delete on agents
    for each row execute function tenax_note_agent();
create trigger agents_note_update after update on agents
    for each row when ((old.pool, old.state) is distinct from (new.pool, new.state))
    execute function tenax_note_agent();
create trigger agent_slots_note after insert or delete on agent_slots
    for each row execute function tenax_note_agent();
create trigger agent_slots_note_update after update on agent_slots
    for each row when ((old.slot_id, old.kind, old.name, old.memory, old.present, old.enabled, old.fault)
                       is distinct from (new.slot_id, new.kind, new.name, new.memory, new.present, new.enabled, new.fault))
    execute function tenax_note_agent();
create trigger agent_presence_note after insert or delete on agent_presence
    for each row execute function tenax_note_agent();
-- Not that it was heard.
create trigger agent_presence_note_update after update on agent_presence
    for each row when ((old.connected, old.labels) is distinct from (new.connected, new.labels))
    execute function tenax_note_agent();
