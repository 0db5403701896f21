-- name: views
select t.name, t.workspace_id, w.name as workspace_name, w.archived as workspace_archived, t.owner_id, u.username, t.config,
       t.version, t.created_at, t.modified_at
from templates t join workspaces w on w.id = t.workspace_id join users u on u.id = t.owner_id
where ($1::text is null or t.name = $1);

-- name: lock
select name from templates where name = $1 for update;

-- name: create
insert into templates (name, workspace_id, owner_id, config) values ($1, $2, $3, $4)
on conflict (name) do nothing
returning name;

-- name: set_config
update templates set config = $3, version = version + 1, modified_at = now()
where name = $1 and version = $2
returning name;

-- name: rename
update templates set name = $3, version = version + 1, modified_at = now()
where name = $1 and version = $2
returning name;

-- name: delete
delete from templates where name = $1 returning name;
