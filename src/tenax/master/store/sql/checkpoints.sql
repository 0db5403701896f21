-- name: upsert
-- A run is superseded when its trial has a newer one. A repeated report changes nothing but what it says itself; what
-- was deleted meanwhile, or is another task's, stays as it is.
insert into checkpoints (uuid, task_id, allocation_id, trial_id, run_id, storage_id, state, superseded,
                         steps_completed, metadata, resources, size_bytes)
values ($1, $2, $3, $4, $5, $6, $7,
        coalesce((select run_id from trials where id = $4) > $5, false),
        $8, $9, $10, $11)
on conflict (uuid) do update
set state = excluded.state, steps_completed = excluded.steps_completed, metadata = excluded.metadata,
    resources = excluded.resources, size_bytes = excluded.size_bytes, storage_id = excluded.storage_id,
    version = checkpoints.version + 1
where checkpoints.task_id = excluded.task_id and checkpoints.state in ('ACTIVE', 'COMPLETED', 'ERROR')
returning uuid;

-- name: get
select * from checkpoints where uuid = $1;

-- name: lock
select * from checkpoints where uuid = $1 for no key update;

-- name: latest
select * from checkpoints
where trial_id = $1 and state = 'COMPLETED' and not superseded and not doomed
order by steps_completed desc, reported_at desc
limit 1;

-- name: of_trial
select * from checkpoints where trial_id = $1 order by steps_completed desc, reported_at desc, uuid;

-- name: of_experiment
select c.* from checkpoints c join trials t on t.id = c.trial_id
where t.experiment_id = $1
order by c.trial_id, c.steps_completed desc, c.reported_at desc, c.uuid;

-- name: set_files
update checkpoints set state = $2, resources = $3, size_bytes = $4, version = version + 1 where uuid = $1 returning *;

-- name: set_metadata
update checkpoints set metadata = $2, version = version + 1 where uuid = $1 returning *;

-- name: trials_using
select distinct trial_id from trial_sources
where checkpoint_uuid = $1 and ($2::text is null or kind = $2) order by trial_id;

-- name: known_storage
select id from storage_backends where config = $1;

-- name: storage_backend
-- Made by somebody else meanwhile: the update that changes nothing makes an existing row come back.
insert into storage_backends (config) values ($1)
on conflict (config) do update set config = excluded.config
returning id;

-- name: storage_of
select config from storage_backends where id = $1;
