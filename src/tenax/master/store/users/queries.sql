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

-- name: file_owner
-- In a workspace that is linked with a uid everyone's tasks run as that. `before`: what was this user's, and nobody else's.
select (select agent_uid from users where id = $1) as own,
       array(select uid from user_uids u where user_id = $1
             and not exists (select 1 from user_uids o where o.uid = u.uid and o.user_id <> u.user_id)) as before,
       array(select agent_uid from users where agent_uid is not null and id is distinct from $1) as others,
       array(select agent_uid from workspaces where agent_uid is not null) as shared;

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

-- name: group_create
insert into user_groups (name) values ($1) on conflict (lower(name)) do nothing returning id;

-- name: group_lock
select id, name from user_groups where id = $1 for no key update;

-- name: get
select id, name from user_groups where id = $1;

-- name: rename
update user_groups set name = $2 where id = $1;

-- name: name_taken
select exists (select 1 from user_groups where lower(name) = lower($2) and id <> $1);

-- name: delete
delete from user_groups where id = $1 returning id;

-- name: add
insert into user_group_members (group_id, user_id)
select g.id, u.id from unnest($1::bigint[]) as g (id), unnest($2::bigint[]) as u (id) order by 1, 2
on conflict do nothing;

-- name: remove
delete from user_group_members where group_id = any($1::bigint[]) and user_id = any($2::bigint[]);

-- name: group_usernames
select g.name, array_agg(u.username order by u.username) as usernames
from user_groups g join user_group_members m on m.group_id = g.id join users u on u.id = m.user_id
group by g.id, g.name
order by g.name;

-- name: members
select u.id, u.username, u.display_name, u.admin, u.active, u.remote, u.password_hash,
       u.agent_uid, u.agent_gid, u.agent_user, u.agent_group, u.modified_at, u.last_login_at
from user_group_members m join users u on u.id = m.user_id
where m.group_id = $1
order by lower(u.username);

-- name: group_missing
select wanted.id from unnest($1::bigint[]) as wanted (id)
where not exists (select 1 from user_groups g where g.id = wanted.id)
order by 1;

-- name: group_count
select count(*) from user_groups g
where ($1::text is null or lower(g.name) = lower($1))
  and ($2::bigint is null or exists (select 1 from user_group_members m where m.group_id = g.id and m.user_id = $2));

-- name: page
select g.id, g.name, (select count(*) from user_group_members m where m.group_id = g.id) as members
from user_groups g
where ($1::text is null or lower(g.name) = lower($1))
  and ($2::bigint is null or exists (select 1 from user_group_members m where m.group_id = g.id and m.user_id = $2))
order by lower(g.name), g.id
limit $3 offset $4;

-- name: session_create
insert into user_sessions (user_id, token_hash, expires_at) values ($1, $2, now() + make_interval(secs => $3));

-- name: session_delete
delete from user_sessions where token_hash = $1 and allocation_id is null returning user_id;

-- name: ticket_delete_expired
delete from page_tickets where expires_at < now();

-- name: ticket_create
insert into page_tickets (ticket_hash, user_id, access_token_id, expires_at, logged_in_at, session_ends_at)
values ($1, $2, $3, now() + make_interval(secs => $4), now() - make_interval(secs => $5), now() + make_interval(secs => $6));

-- name: ticket_use
-- Of two who bring the same one, one gets it. One of a token that is no good any more is none.
delete from page_tickets p
where p.ticket_hash = $1 and p.expires_at > now() and p.session_ends_at > now()
  and not exists (select 1 from access_tokens t where t.id = p.access_token_id and t.revoked_at is not null)
returning p.user_id, p.access_token_id as access_token, extract(epoch from now() - p.logged_in_at)::float8 as age_s,
          extract(epoch from p.session_ends_at - now())::float8 as seconds_left;

-- name: ticket_session
insert into user_sessions (user_id, token_hash, expires_at, created_at, access_token_id)
values ($1, $2, now() + make_interval(secs => $3), now() - make_interval(secs => $4), $5);

-- name: delete_of_user
-- Of people; a task's session ends with its allocation.
with tickets as (delete from page_tickets where user_id = $1)
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

-- name: access_token_create
insert into access_tokens (user_id, made_by, token_hash, description, expires_at, made_with)
values ($1, $2, $3, $4, now() + make_interval(secs => $5), $6)
returning id;

-- name: access_token_seconds_left
select case when revoked_at is null then greatest(extract(epoch from expires_at - now()), 0) else 0 end::float8
from access_tokens where id = $1;

-- name: access_token_lock
select t.id, t.user_id, (select u.username from users u where u.id = t.user_id) as username, t.description,
       t.created_at, t.expires_at, t.revoked_at
from access_tokens t where t.id = $1 for no key update of t;

-- name: describe
update access_tokens set description = $2 where id = $1;

-- name: revoke
-- With all that were made with it, and with those.
with recursive made as (
    select id from access_tokens where id = $1
    union
    select t.id from access_tokens t join made m on t.made_with = m.id),
sessions as (delete from user_sessions s using made m where s.access_token_id = m.id)
update access_tokens t set revoked_at = now() from made m where t.id = m.id and t.revoked_at is null
returning t.user_id;

-- name: access_token_columns
select t.id, t.user_id, u.username, t.description, t.created_at, t.expires_at, t.revoked_at

-- name: access_token_matching
from access_tokens t join users u on u.id = t.user_id
where ($1::bigint is null or t.user_id = $1)
  and ($2::text is null or lower(u.username) = lower($2))
  and ($3::bigint[] is null or t.id = any($3))
  and ($4 or (t.revoked_at is null and t.expires_at > now()))

-- name: access_token_user_of
-- Whose token it is, and for how many seconds it is still good.
select t.id as token_id, extract(epoch from t.expires_at - now())::float8 as seconds_left,
       u.id, u.username, u.display_name, u.admin, u.active, u.remote, u.password_hash,
       u.agent_uid, u.agent_gid, u.agent_user, u.agent_group, u.modified_at, u.last_login_at
from access_tokens t join users u on u.id = t.user_id
where t.token_hash = $1 and t.revoked_at is null and t.expires_at > now();

-- name: all
select storage_path, key, value from user_settings where user_id = $1 order by storage_path, key;

-- name: put
insert into user_settings (user_id, storage_path, key, value)
select $1, storage_path, key, value from unnest($2::text[], $3::text[], $4::text[]) as given (storage_path, key, value)
on conflict (user_id, storage_path, key) do update set value = excluded.value;

-- name: size
select count(*), coalesce(sum(length(storage_path) + length(key) + length(value)), 0)
from user_settings where user_id = $1;

-- name: reset
delete from user_settings where user_id = $1;

-- name: saw_project
insert into user_activity (user_id, project_id) values ($1, $2)
on conflict (user_id, project_id) do update set at = now();

-- name: recent_projects
select project_id from user_activity where user_id = $1 order by at desc, project_id limit $2;

-- name: project_exists
select exists (select 1 from projects where id = $1);

-- name: failed_login_lock
-- The clock, not the transaction's time: it may have waited for the row.
insert into failed_logins as f (key) values ($1)
on conflict (key) do update set count = f.count
returning f.count, extract(epoch from clock_timestamp() - f.last_at)::float8 as seconds;

-- name: failed_login_count
update failed_logins set count = $2, last_at = clock_timestamp() where key = $1;

-- name: failed_login_forget
delete from failed_logins where key = $1;

-- name: failed_logins_forget
-- Rows that somebody else is counting in are left to another time.
delete from failed_logins where key in (
    select key from failed_logins where last_at < now() - make_interval(secs => $1)
    order by last_at limit $2 for update skip locked);

-- name: session_age
select extract(epoch from now() - created_at)::float8 as age, extract(epoch from expires_at - now())::float8 as seconds_left
from user_sessions where token_hash = $1;
