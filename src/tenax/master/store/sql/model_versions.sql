-- name: columns
select v.id, v.model_id, v.version, v.checkpoint_uuid, v.name, v.comment, v.notes, v.labels, v.metadata, v.owner_id,
       u.username, v.created_at, v.updated_at
from model_versions v join users u on u.id = v.owner_id

-- name: of_model
where v.model_id = $1

-- name: count
select count(*) from model_versions where model_id = $1;

-- name: checkpoint
-- Neither it nor its experiment may go while it is being registered.
select c.state, c.superseded, c.doomed, e.id as experiment_id, e.state as experiment_state
from checkpoints c
left join trials t on t.id = c.trial_id
left join experiments e on e.id = t.experiment_id
where c.uuid = $1
for share of c;

-- name: lock_experiment
select e.id from experiments e
join trials t on t.experiment_id = e.id
join checkpoints c on c.trial_id = t.id
where c.uuid = $1
for share of e;

-- name: next_number
update models set last_version = last_version + 1, updated_at = now() where id = $1 returning last_version;

-- name: create
insert into model_versions (model_id, version, checkpoint_uuid, name, comment, notes, labels, metadata, owner_id)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: edit
update model_versions
set name = coalesce($3, name), comment = coalesce($4, comment), notes = coalesce($5, notes),
    labels = coalesce($6, labels), metadata = coalesce($7, metadata), updated_at = now()
where model_id = $1 and version = $2;

-- name: touch
update models set updated_at = now() where id = $1;

-- name: delete
-- Its checkpoint's experiment, whose policy holds for it again.
delete from model_versions v using checkpoints c left join trials t on t.id = c.trial_id
where v.model_id = $1 and v.version = $2 and c.uuid = v.checkpoint_uuid
returning t.experiment_id;

-- name: trials
-- Trials that used it, of a kind.
select distinct trial_id from trial_sources where model_id = $1 and model_version = $2 and ($3::text is null or kind = $3);
