-- name: columns
select m.id, m.name, m.description, m.notes, m.labels, m.metadata, m.workspace_id, m.owner_id, u.username, m.archived,
       m.created_at, m.updated_at, m.last_version,
       (select count(*)::int from model_versions v where v.model_id = m.id) as versions

-- name: id
select m.id

-- name: of_ids
where m.id = any($1::bigint[])

-- name: sources
from models m
join workspaces w on w.id = m.workspace_id
join users u on u.id = m.owner_id

-- name: matching
where ($1::bigint is null or m.id = $1)
  and ($2::text is null or m.name = $2)
  and ($3::text is null or m.name ilike $3)
  and ($4::text is null or m.description ilike $4)
  and ($5::text[] is null or m.labels @> $5)
  and ($6::boolean is null or m.archived = $6)
  and ($7::text[] is null or lower(u.username) = any($7))
  and ($8::bigint[] is null or m.owner_id = any($8))
  and ($9::bigint[] is null or m.workspace_id = any($9))
  and ($10::text[] is null or lower(w.name) = any($10))

-- name: by_id
select id from models where id = $1;

-- name: by_name
select id from models where name = $1;

-- name: lock
select m.id, m.name, m.owner_id, m.workspace_id, m.archived, w.name as workspace_name,
       w.archived or w.state = 'DELETING' as workspace_closed
from models m join workspaces w on w.id = m.workspace_id
where m.id = $1
for update of m for share of w;

-- name: create
insert into models (name, description, notes, labels, metadata, workspace_id, owner_id)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (name) do nothing
returning id;

-- name: edit
update models
set name = coalesce($2, name), description = coalesce($3, description), notes = coalesce($4, notes),
    labels = coalesce($5, labels), metadata = coalesce($6, metadata), workspace_id = coalesce($7, workspace_id),
    updated_at = now()
where id = $1;

-- name: set_archived
update models set archived = $2, updated_at = now() where id = $1;

-- name: delete
delete from models where id = $1;

-- name: labels
select label
from models m, unnest(m.labels) as label
where $1::bigint is null or m.workspace_id = $1
group by label
order by count(*) desc, label;

-- name: version_columns
select v.id, v.model_id, v.version, v.checkpoint_uuid, v.name, v.comment, v.notes, v.labels, v.metadata, v.owner_id,
       u.username, v.created_at, v.updated_at
from model_versions v join users u on u.id = v.owner_id

-- name: version_numbers
select v.version from model_versions v where v.model_id = $1

-- name: of_numbers
where v.model_id = $1 and v.version = any($2::integer[])

-- name: count
select count(*) from model_versions where model_id = $1;

-- name: checkpoint
-- Neither it nor its experiment may go while it is being registered.
select c.state, c.superseded, c.removal_requested, e.id as experiment_id, e.state as experiment_state
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

-- name: version_create
insert into model_versions (model_id, version, checkpoint_uuid, name, comment, notes, labels, metadata, owner_id)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: version_edit
update model_versions
set name = coalesce($3, name), comment = coalesce($4, comment), notes = coalesce($5, notes),
    labels = coalesce($6, labels), metadata = coalesce($7, metadata), updated_at = now()
where model_id = $1 and version = $2;

-- name: touch
update models set updated_at = now() where id = $1;

-- name: version_delete
-- Its checkpoint's experiment, whose policy holds for it again.
delete from model_versions v using checkpoints c left join trials t on t.id = c.trial_id
where v.model_id = $1 and v.version = $2 and c.uuid = v.checkpoint_uuid
returning t.experiment_id;

-- name: trials
-- Trials that used it, of a kind.
select distinct trial_id from trial_sources where model_id = $1 and model_version = $2 and ($3::text is null or kind = $3);
