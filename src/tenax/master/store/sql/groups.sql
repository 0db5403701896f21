-- name: create
insert into user_groups (name) values ($1) on conflict (lower(name)) do nothing returning id;

-- name: lock
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

-- name: members
select u.id, u.username, u.display_name, u.admin, u.active, u.remote, u.password_hash,
       u.agent_uid, u.agent_gid, u.agent_user, u.agent_group, u.modified_at, u.last_login_at
from user_group_members m join users u on u.id = m.user_id
where m.group_id = $1
order by lower(u.username);

-- name: missing
select wanted.id from unnest($1::bigint[]) as wanted (id)
where not exists (select 1 from user_groups g where g.id = wanted.id)
order by 1;

-- name: count
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
