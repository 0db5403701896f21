-- name: notify
select pg_notify('tenax', $1);

-- name: probe
select 1;
