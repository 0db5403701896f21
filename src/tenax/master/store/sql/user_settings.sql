-- name: all
select storage_path, key, value from user_settings where user_id = $1 order by storage_path, key;

-- name: put
insert into user_settings (user_id, storage_path, key, value)
select $1, storage_path, key, value from unnest($2::text[], $3::text[], $4::text[]) as given (storage_path, key, value)
on conflict (user_id, storage_path, key) do update set value = excluded.value;

-- name: size
select coalesce(sum(length(storage_path) + length(key) + length(value)), 0) from user_settings where user_id = $1;

-- name: reset
delete from user_settings where user_id = $1;

-- name: saw_project
insert into user_activity (user_id, project_id) values ($1, $2)
on conflict (user_id, project_id) do update set at = now();

-- name: recent_projects
select project_id from user_activity where user_id = $1 order by at desc, project_id limit $2;

-- name: project_exists
select exists (select 1 from projects where id = $1);
