-- name: count
select count(*) from users;

-- name: lock_table
-- Two masters that start at once make the first users once.
lock table users in share row exclusive mode;

-- name: by_id
select id, username, display_name, admin, active, remote, password_hash, agent_uid, agent_gid, agent_user, agent_group,
       modified_at, last_login_at
from users where id = $1;

-- name: by_name
select id, username, display_name, admin, active, remote, password_hash, agent_uid, agent_gid, agent_user, agent_group,
       modified_at, last_login_at
from users where lower(username) = lower($1);

-- name: create
insert into users (username, display_name, admin, active, remote, password_hash, agent_uid, agent_gid, agent_user, agent_group)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (lower(username)) do nothing
returning id;

-- name: update
update users
set username = $2, display_name = $3, admin = $4, active = $5, remote = $6, password_hash = $7,
    agent_uid = $8, agent_gid = $9, agent_user = $10, agent_group = $11, modified_at = now()
where id = $1
returning id;

-- name: lock
-- The user, and every administrator that there is: of two that take the right from each other, one waits. In the order of
-- ids, so that neither waits for the other.
select id, username, display_name, admin, active, remote, password_hash, agent_uid, agent_gid, agent_user, agent_group,
       modified_at, last_login_at
from users where id = $1 or (admin and active)
order by id
for no key update;

-- name: missing
select wanted.id from unnest($1::bigint[]) as wanted (id)
where not exists (select 1 from users u where u.id = wanted.id)
order by 1;

-- name: logged_in
update users set last_login_at = now() where id = $1;

-- name: columns
select id, username, display_name, admin, active, remote, password_hash, agent_uid, agent_gid, agent_user, agent_group,
       modified_at, last_login_at

-- name: matching
from users
where ($1::boolean is null or active = $1)
  and ($2::boolean is null or admin = $2)
  and ($3::text is null or username ilike $3 or display_name ilike $3)
