-- name: create_first_workspace
insert into workspaces (id, name, immutable) overriding system value
select 1, 'Uncategorized', true
where not exists (select 1 from workspaces)
on conflict do nothing;

-- name: create_first_project
insert into projects (id, workspace_id, name, key, immutable) overriding system value
select 1, 1, 'Uncategorized', 'UNC', true
where not exists (select 1 from projects)
on conflict do nothing;

-- name: skip_first
-- The identities go on after the rows that were numbered by hand.
select setval(pg_get_serial_sequence('workspaces', 'id'), (select max(id) from workspaces)),
       setval(pg_get_serial_sequence('projects', 'id'), (select max(id) from projects));

-- name: by_id
select p.id, p.name, p.workspace_id, w.name as workspace_name, p.archived or w.archived as archived
from projects p join workspaces w on w.id = p.workspace_id
where p.id = $1;

-- name: by_name
select p.id, p.name, p.workspace_id, w.name as workspace_name, p.archived or w.archived as archived
from projects p join workspaces w on w.id = p.workspace_id
where lower(w.name) = lower($1) and lower(p.name) = lower($2);

-- name: workspace_by_name
select id from workspaces where lower(name) = lower($1);

-- name: share_workspace
-- First: whoever deletes a workspace holds it when its projects go.
select w.id from workspaces w join projects p on p.workspace_id = w.id where p.id = $1 for share of w;

-- name: lock
select p.id, p.name, p.workspace_id, w.name as workspace_name, p.archived or w.archived as archived, p.owner_id,
       w.owner_id as workspace_owner_id, p.immutable, p.archived as archived_itself, p.state, w.state as workspace_state
from projects p join workspaces w on w.id = p.workspace_id
where p.id = $1
for update of p for share of w;

-- name: share
-- What is put into it keeps it from being archived, moved or deleted until that is committed.
select p.id, p.name, p.workspace_id, w.name as workspace_name, p.archived or w.archived as archived, p.owner_id,
       w.owner_id as workspace_owner_id, p.immutable, p.archived as archived_itself, p.state, w.state as workspace_state
from projects p join workspaces w on w.id = p.workspace_id
where p.id = $1
for share;

-- name: by_key
select id from projects where key = upper($1);

-- name: keys_like
select key from projects where starts_with(key, $1);

-- name: create
insert into projects (workspace_id, name, description, key, owner_id)
values ($1, $2, $3, coalesce($4, upper(substr(md5(random()::text), 1, 5))), $5)
on conflict do nothing
returning id;

-- name: name_taken
select exists (select 1 from projects where workspace_id = $1 and lower(name) = lower($2) and id <> $3);

-- name: edit
update projects set name = coalesce($2, name), description = coalesce($3, description), key = coalesce($4, key)
where id = $1;

-- name: set_archived
update projects set archived = $2 where id = $1;

-- name: set_notes
update projects set notes = $2 where id = $1 returning notes;

-- name: add_note
update projects set notes = notes || jsonb_build_array($2::jsonb) where id = $1 returning notes;

-- name: move
update projects set workspace_id = $2 where id = $1;
