-- name: asked
select id from experiments where state = 'DELETING' order by id;

-- name: trials
select id, task_id from trials where experiment_id = $1 order by id;

-- name: held
-- Whether anything of it is still on a machine.
select exists (
    select 1
    from trials t join allocations a on a.task_id = t.task_id join containers c on c.allocation_id = a.allocation_id
    where t.experiment_id = $1 and c.gone_at is null);

-- name: needed_elsewhere
-- Its checkpoints that live trials of other experiments start from.
select c.uuid, o.id as trial_id, o.experiment_id
from trials t
join checkpoints c on c.trial_id = t.id and c.state in ('COMPLETED', 'PARTIALLY_DELETED')
join trials o on o.warm_start_checkpoint = c.uuid and o.experiment_id <> t.experiment_id and o.state = 'ACTIVE'
where t.experiment_id = $1
order by c.uuid, o.id
limit 1;

-- name: documents
select d.config, d.context_hash, e.job_id, e.unmanaged, (select c.cluster_id::text from cluster c) as cluster_id
from experiments e join experiment_documents d on d.experiment_id = e.id
where e.id = $1;

-- name: checkpoints
select c.uuid, s.config as storage
from trials t
join checkpoints c on c.trial_id = t.id and c.state <> 'DELETED'
left join storage_backends s on s.id = c.storage_id
where t.experiment_id = $1
order by c.uuid;

-- name: delete_experiment
delete from experiments where id = $1 and state = 'DELETING' returning id;

-- name: delete_job
delete from jobs where job_id = $1;

-- name: tell
update experiments set reason = $2, version = version + 1 where id = $1 and state = 'DELETING';
