-- name: set_archived
update trials set archived = $2 where id = $1 and archived <> $2;

-- name: held
-- Whether anything of it is still on a machine.
select exists (
    select 1 from allocations a join containers c on c.allocation_id = a.allocation_id
    where a.task_id = $1 and c.gone_at is null);

-- name: uploads
-- Files that its task began to upload, and that are no checkpoints.
select u.uuid, s.config as storage
from checkpoint_uploads u
join storage_backends s on s.id = u.storage_id
where u.task_id = $1 and u.collected_at is null and not exists (select 1 from checkpoints c where c.uuid = u.uuid)
order by u.uuid;

-- name: checkpoints
select c.uuid, s.config as storage, v.checkpoint_uuid is not null as registered
from checkpoints c
left join storage_backends s on s.id = c.storage_id
left join lateral (select checkpoint_uuid from model_versions where checkpoint_uuid = c.uuid limit 1) v on true
where c.trial_id = $1 and (c.state <> 'DELETED' or v.checkpoint_uuid is not null)
order by c.uuid;

-- name: needed_by
-- Another live trial that starts from one of its checkpoints.
select o.id from checkpoints c join trials o on o.warm_start_checkpoint = c.uuid and o.id <> $1 and o.state = 'ACTIVE'
where c.trial_id = $1 order by o.id limit 1;

-- name: delete
delete from trials where id = $1;

-- name: of_experiments
select id from trials where experiment_id = any($1::bigint[]) order by experiment_id, id;
