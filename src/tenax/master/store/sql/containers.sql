-- name: lock_members
select container_id, agent_id, rank, slots, state, want, version, exit, daemon from containers
where allocation_id = $1 order by rank for no key update;

-- name: create
-- With the slots that it holds from now on.
with made as (
    insert into containers (container_id, allocation_id, rank, agent_id, slots) values ($1, $2, $3, $4, $5)
    returning container_id, agent_id, slots)
insert into slots_in_use (agent_id, slot_id, container_id) select agent_id, unnest(slots), container_id from made;

-- name: set_state
update containers
set state = $3, want = $4, exit = $5, daemon = $7, address = case when $6 = '' then address else $6 end, version = version + 1,
    started_at = case when $3 = 'RUNNING' then coalesce(started_at, now()) else started_at end,
    ended_at = case when $3 = 'TERMINATED' then coalesce(ended_at, now()) end
where container_id = $1 and version = $2
returning version;

-- name: gone
with gone as (
    update containers set gone_at = now(), version = version + 1
    where container_id = $1 and agent_id = $2 and gone_at is null and state = 'TERMINATED'
    returning container_id),
freed as (delete from slots_in_use u using gone where u.container_id = gone.container_id)
select container_id from gone;

-- name: wanted
-- All containers of an agent that are not gone, with what their specification is made of.
select c.container_id, c.allocation_id, c.rank, c.slots, c.want, c.state,
       a.task_id, a.run_id, t.kind as task_kind, t.spec, j.pool,
       (select count(*) from containers m where m.allocation_id = c.allocation_id)::int as members,
       tr.id as trial_id, tr.experiment_id, tr.hparams, tr.seed as trial_seed, tr.warm_start_checkpoint,
       d.config, coalesce(d.context_hash, l.context_hash) as context_hash,
       u.id as owner_id, u.username,
       coalesce(w.agent_uid, u.agent_uid) as agent_uid, coalesce(w.agent_gid, u.agent_gid) as agent_gid,
       coalesce(w.agent_user, u.agent_user) as agent_user,
       coalesce((select s.kind from agent_slots s where s.agent_id = c.agent_id and s.slot_id = c.slots[1]), 'cpu') as device_kind,
       ck.uuid as latest_checkpoint, coalesce(ck.steps_completed, 0) as steps_completed
from containers c
join allocations a on a.allocation_id = c.allocation_id
join tasks t on t.task_id = a.task_id
join jobs j on j.job_id = t.job_id
left join launched_tasks l on l.task_id = t.task_id
left join trials tr on tr.id = t.trial_id
left join experiment_documents d on d.experiment_id = tr.experiment_id
left join experiments e on e.id = tr.experiment_id
left join projects p on p.id = e.project_id
left join workspaces w on w.id = coalesce(p.workspace_id, l.workspace_id)
left join users u on u.id = j.owner_id
left join lateral (
    select uuid, steps_completed from checkpoints k
    where k.trial_id = tr.id and k.state = 'COMPLETED' and not k.superseded and not k.doomed
    order by steps_completed desc, reported_at desc limit 1) ck on true
where c.agent_id = $1 and c.gone_at is null
order by c.container_id;
