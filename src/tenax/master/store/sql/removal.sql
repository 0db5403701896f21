-- name: running
-- The first of the experiments that have not ended.
select e.id, e.state from experiments e join projects p on p.id = e.project_id
where p.workspace_id = coalesce($1, p.workspace_id) and p.id = coalesce($2, p.id) and not e.state = any($3::text[])
order by e.id limit 1;

-- name: registered
-- The first of the checkpoints that are registered as a version of a model.
select c.uuid, t.experiment_id, m.name as model, v.version
from experiments e
join projects p on p.id = e.project_id
join trials t on t.experiment_id = e.id
join checkpoints c on c.trial_id = t.id
join model_versions v on v.checkpoint_uuid = c.uuid
join models m on m.id = v.model_id
where p.workspace_id = coalesce($1, p.workspace_id) and p.id = coalesce($2, p.id)
order by t.experiment_id, m.id, v.version limit 1;

-- name: ask
update experiments e set state = 'DELETING', reason = $4, version = e.version + 1
from projects p
where p.id = e.project_id and p.workspace_id = coalesce($1, p.workspace_id) and p.id = coalesce($2, p.id)
  and e.state = any($3::text[])
returning e.id;

-- name: mark_workspace
update workspaces set state = $2, error_message = $3 where id = $1;

-- name: mark_project
update projects set state = $2, error_message = $3 where id = $1;

-- name: going_workspaces
select id from workspaces where state = 'DELETING' order by id;

-- name: going_projects
select id from projects where state = 'DELETING' order by id;

-- name: lock_workspace
select id from workspaces where id = $1 and state = 'DELETING' for update;

-- name: lock_project
select id from projects where id = $1 and state = 'DELETING' for update;

-- name: left
select count(*)::int as experiments, min(e.id) filter (where e.state <> 'DELETING') as stuck
from experiments e join projects p on p.id = e.project_id
where p.workspace_id = coalesce($1, p.workspace_id) and p.id = coalesce($2, p.id);

-- name: reason
select reason from experiments where id = $1;

-- name: delete_projects
delete from projects where workspace_id = $1;

-- name: delete_workspace
delete from workspaces where id = $1 and state = 'DELETING';

-- name: delete_project
delete from projects where id = $1 and state = 'DELETING';
