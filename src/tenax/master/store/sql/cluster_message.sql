-- name: get
select message, starts_at, ends_at, created_at, starts_at <= now() as begun
from cluster_message where ends_at is null or ends_at > now();

-- name: put
insert into cluster_message (message, starts_at, ends_at, set_by) values ($1, $2, $3, $4)
on conflict (only_row) do update
set message = excluded.message, starts_at = excluded.starts_at, ends_at = excluded.ends_at, set_by = excluded.set_by,
    created_at = now();

-- name: drop
delete from cluster_message;
