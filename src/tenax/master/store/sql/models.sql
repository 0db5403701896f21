-- name: columns
select m.id, m.name, m.description, m.notes, m.labels, m.metadata, m.workspace_id, m.owner_id, u.username, m.archived,
       m.created_at, m.updated_at, m.last_version,
       (select count(*)::int from model_versions v where v.model_id = m.id) as versions

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
