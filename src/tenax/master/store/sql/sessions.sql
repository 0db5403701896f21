-- name: create
insert into user_sessions (user_id, token_hash, expires_at) values ($1, $2, now() + make_interval(secs => $3));

-- name: delete
delete from user_sessions where token_hash = $1 and allocation_id is null returning user_id;

-- name: delete_of_user
-- Of people; a task's session ends with its allocation.
delete from user_sessions where user_id = $1 and allocation_id is null and token_hash is distinct from $2;

-- name: delete_expired
delete from user_sessions where expires_at < now();

-- name: user_of
-- A session of a person, or of a task as its owner; and for how many seconds it is still good.
select s.allocation_id, extract(epoch from s.expires_at - now())::float8 as seconds_left, u.id, u.username, u.display_name, u.admin, u.active, u.remote, u.password_hash,
       u.agent_uid, u.agent_gid, u.agent_user, u.agent_group, u.modified_at, u.last_login_at
from user_sessions s join users u on u.id = s.user_id
where s.token_hash = $1 and s.expires_at > now();

-- name: allocation_of
-- An attempt that has ended has its token for as long as a container of it, with what it has left to report, is there.
select t.allocation_id, a.task_id, a.run_id, k.trial_id, tr.experiment_id, a.state = 'TERMINATED' as ended,
       u.id, u.username, u.display_name, u.admin, u.active, u.remote, u.password_hash,
       u.agent_uid, u.agent_gid, u.agent_user, u.agent_group, u.modified_at, u.last_login_at
from allocation_tokens t
join allocations a on a.allocation_id = t.allocation_id
join tasks k on k.task_id = a.task_id
left join trials tr on tr.id = k.trial_id
join users u on u.id = t.user_id
where t.token_hash = $1
  and (a.state <> 'TERMINATED'
       or exists (select 1 from containers c where c.allocation_id = a.allocation_id and c.gone_at is null));

-- name: agent_of
select agent_id from agents where credential_hash = $1;
