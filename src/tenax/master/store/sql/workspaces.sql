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
