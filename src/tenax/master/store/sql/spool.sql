-- name: is_member
select 1 from containers where container_id = $1 and allocation_id = $2;

-- name: acked
select acked from spool_streams where container_id = $1 and stream = $2;

-- name: create
insert into spool_streams (container_id, stream, allocation_id, acked) values ($1, $2, $3, 0) on conflict do nothing;

-- name: take
update spool_streams set acked = $3 where container_id = $1 and stream = $2 and acked = $3 - 1 returning acked;

-- name: refuse
insert into spool_refusals (container_id, stream, n, message, fatal) values ($1, $2, $3, $4, $5) on conflict do nothing;

-- name: refused
select n, message, fatal from spool_refusals
where container_id = $1 and stream = $2 and n between $3 and $4
order by n;
