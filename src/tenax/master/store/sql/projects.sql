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
