-- name: columns
select w.id, w.name, w.owner_id, coalesce(u.username, '') as username, w.immutable, w.archived, w.state, w.error_message,
       w.agent_uid, w.agent_gid, w.agent_user, w.agent_group, w.checkpoint_storage,
       w.default_compute_pool, w.default_aux_pool, pin.pinned_at,
       (select count(*)::int from projects p where p.workspace_id = w.id) as projects,
       (select coalesce(sum(held.experiments), 0)::int
        from projects p, lateral (select count(*) as experiments from experiments e where e.project_id = p.id) held
        where p.workspace_id = w.id) as experiments

-- name: matching
-- $1: on whose behalf, for the pins.
from workspaces w
left join users u on u.id = w.owner_id
left join workspace_pins pin on pin.workspace_id = w.id and pin.user_id = $1
where ($2::bigint is null or w.id = $2)
  and ($3::boolean is null or w.archived = $3)
  and ($4::text is null or lower(w.name) = lower($4))
  and ($5::text is null or w.name = $5)
  and ($6::text[] is null or lower(u.username) = any($6))
  and ($7::bigint[] is null or w.owner_id = any($7))
  and ($8::boolean is null or (pin.pinned_at is not null) = $8)

-- name: lock
select id, name, owner_id, immutable, archived, state from workspaces where id = $1 for update;

-- name: share
-- What is put into it keeps it from being archived or deleted until that is committed.
select id, name, owner_id, immutable, archived, state from workspaces where id = $1 for share;

-- name: by_name
select id from workspaces where lower(name) = lower($1);

-- name: create
insert into workspaces (name, owner_id, agent_uid, agent_gid, agent_user, agent_group, checkpoint_storage,
                        default_compute_pool, default_aux_pool)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
on conflict (lower(name)) do nothing
returning id;

-- name: rename
update workspaces set name = $2
where id = $1 and not exists (select 1 from workspaces o where lower(o.name) = lower($2) and o.id <> $1)
returning id;

-- name: agent_uid
-- As whom the tasks of a user run in a workspace.
select coalesce((select agent_uid from workspaces where id = $1), (select agent_uid from users where id = $2));

-- name: set_agent_user
update workspaces set agent_uid = $2, agent_gid = $3, agent_user = $4, agent_group = $5 where id = $1;

-- name: set_storage
update workspaces set checkpoint_storage = $2 where id = $1;

-- name: set_pools
update workspaces
set default_compute_pool = coalesce($2, default_compute_pool), default_aux_pool = coalesce($3, default_aux_pool)
where id = $1;

-- name: set_archived
update workspaces set archived = $2 where id = $1;

-- name: pin
insert into workspace_pins (workspace_id, user_id) values ($1, $2) on conflict do nothing;

-- name: unpin
delete from workspace_pins where workspace_id = $1 and user_id = $2;

-- name: defaults
select checkpoint_storage, default_compute_pool, default_aux_pool from workspaces where id = $1;

-- name: models
select name from models where workspace_id = $1 order by id limit 1;

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

-- name: project_by_name
select p.id, p.name, p.workspace_id, w.name as workspace_name, p.archived or w.archived as archived
from projects p join workspaces w on w.id = p.workspace_id
where lower(w.name) = lower($1) and lower(p.name) = lower($2);

-- name: workspace_by_name
select id from workspaces where lower(name) = lower($1);

-- name: share_workspace
-- First: whoever deletes a workspace holds it when its projects go.
select w.id from workspaces w join projects p on p.workspace_id = w.id where p.id = $1 for share of w;

-- name: project_lock
select p.id, p.name, p.workspace_id, w.name as workspace_name, p.archived or w.archived as archived, p.owner_id,
       w.owner_id as workspace_owner_id, p.immutable, p.archived as archived_itself, p.state, w.state as workspace_state
from projects p join workspaces w on w.id = p.workspace_id
where p.id = $1
for update of p for share of w;

-- name: project_share
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

-- name: project_create
insert into projects (workspace_id, name, description, key, owner_id)
values ($1, $2, $3, coalesce($4, upper(substr(md5(random()::text), 1, 5))), $5)
on conflict do nothing
returning id;

-- name: name_taken
select exists (select 1 from projects where workspace_id = $1 and lower(name) = lower($2) and id <> $3);

-- name: edit
update projects set name = coalesce($2, name), description = coalesce($3, description), key = coalesce($4, key)
where id = $1;

-- name: project_set_archived
update projects set archived = $2 where id = $1;

-- name: set_notes
update projects set notes = $2 where id = $1 returning notes;

-- name: add_note
update projects set notes = notes || jsonb_build_array($2::jsonb) where id = $1 returning notes;

-- name: move
update projects set workspace_id = $2 where id = $1;

-- name: list_columns
select p.id, p.name, p.description, p.key, p.notes, p.workspace_id, w.name as workspace_name, p.owner_id,
       w.owner_id as workspace_owner_id, coalesce(u.username, '') as username, p.immutable,
       p.archived or w.archived as archived, p.state, p.error_message,
       held.experiments, live.active, newest.created_at as last_at, counted.runs

-- name: sources
from projects p
join workspaces w on w.id = p.workspace_id
left join users u on u.id = p.owner_id

-- name: held
-- Each from an index alone: a project may hold a hundred thousand.
left join lateral (
    select count(*)::int as experiments, max(e.id) as newest_id
    from experiments e where e.project_id = p.id) held on true
left join lateral (
    select count(*)::int as active from experiments e where e.project_id = p.id and e.ended_at is null) live on true
left join lateral (
    select count(*)::int as runs from run_numbers n where n.project_id = p.id) counted on true
left join experiments newest on newest.id = held.newest_id

-- name: list_matching
where ($1::bigint is null or p.workspace_id = $1)
  and ($2::bigint[] is null or p.id = any($2))
  and ($3::boolean is null or (p.archived or w.archived) = $3)
  and ($4::text is null or lower(p.name) = lower($4))
  and ($5::text[] is null or lower(u.username) = any($5))
  and ($6::bigint[] is null or p.owner_id = any($6))

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

-- name: hold_experiments
-- In order: the update after it takes its rows as they come.
select e.id from experiments e join projects p on p.id = e.project_id
where p.workspace_id = coalesce($1, p.workspace_id) and p.id = coalesce($2, p.id) and e.state = any($3::text[])
order by e.id for no key update of e;

-- name: delete_experiments
-- Of those that are held; one that was moved elsewhere before is left alone.
update experiments e set state = 'DELETING', reason = $5, version = e.version + 1
from projects p
where e.id = any($1::bigint[]) and p.id = e.project_id
  and p.workspace_id = coalesce($2, p.workspace_id) and p.id = coalesce($3, p.id) and e.state = any($4::text[]);

-- name: mark_workspace
update workspaces set state = $2, error_message = $3 where id = $1;

-- name: mark_project
update projects set state = $2, error_message = $3 where id = $1;

-- name: deleting_workspaces
select id from workspaces where state = 'DELETING' order by id;

-- name: deleting_projects
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
