-- name: put
insert into contexts (hash, archive, size_bytes) values ($1, $2, $3) on conflict (hash) do nothing;

-- name: keep
-- Not dropped until whoever names it is committed.
select true from contexts where hash = $1 for key share;

-- name: get
select archive from contexts where hash = $1;

-- name: part
-- A piece of an archive, so that none is held as a whole; the first byte is number 1.
select substring(archive from $2 for $3) from contexts where hash = $1;

-- name: size
select octet_length(archive) from contexts where hash = $1;

-- name: of_experiment
select d.context_hash from experiment_documents d where d.experiment_id = $1;

-- name: of_task
select t.task_id, coalesce(d.context_hash, l.context_hash) as context_hash
from tasks t
left join launched_tasks l on l.task_id = t.task_id
left join trials tr on tr.id = t.trial_id
left join experiment_documents d on d.experiment_id = tr.experiment_id
where t.task_id = $1;

-- name: wanted_by_agent
-- Whether a container of this agent runs that code, or will.
select exists (
    select 1
    from containers c
    join allocations a on a.allocation_id = c.allocation_id
    join tasks t on t.task_id = a.task_id
    left join launched_tasks l on l.task_id = t.task_id
    left join trials tr on tr.id = t.trial_id
    left join experiment_documents d on d.experiment_id = tr.experiment_id
    where c.agent_id = $1 and c.gone_at is null and coalesce(d.context_hash, l.context_hash) = $2);

-- name: claim
-- Whoever holds it is about to name it.
select true from contexts where hash = $1 for update skip locked;

-- name: delete_unused
delete from contexts c
where c.hash = $1 and not exists (select 1 from experiment_documents d where d.context_hash = c.hash)
  and not exists (select 1 from launched_tasks l where l.context_hash = c.hash);
