-- name: create
insert into access_tokens (user_id, made_by, token_hash, description, expires_at)
values ($1, $2, $3, $4, now() + make_interval(secs => $5))
returning id;

-- name: lock
select id, user_id, description, created_at, expires_at, revoked_at from access_tokens where id = $1 for no key update;

-- name: describe
update access_tokens set description = $2 where id = $1;

-- name: revoke
update access_tokens set revoked_at = now() where id = $1 and revoked_at is null;

-- name: columns
select t.id, t.user_id, t.description, t.created_at, t.expires_at, t.revoked_at

-- name: matching
from access_tokens t join users u on u.id = t.user_id
where ($1::bigint is null or t.user_id = $1)
  and ($2::text is null or lower(u.username) = lower($2))
  and ($3::bigint[] is null or t.id = any($3))
  and ($4 or (t.revoked_at is null and t.expires_at > now()))

-- name: user_of
-- Whose token it is, and for how many seconds it is still good.
select extract(epoch from t.expires_at - now())::float8 as seconds_left,
       u.id, u.username, u.display_name, u.admin, u.active, u.remote, u.password_hash,
       u.agent_uid, u.agent_gid, u.agent_user, u.agent_group, u.modified_at, u.last_login_at
from access_tokens t join users u on u.id = t.user_id
where t.token_hash = $1 and t.revoked_at is null and t.expires_at > now();
