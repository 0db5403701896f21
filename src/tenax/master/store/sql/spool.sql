-- name: acked_of_member
select coalesce(s.acked, 0) as acked
from containers c left join spool_streams s on s.container_id = c.container_id and s.stream = $2
where c.container_id = $1 and c.allocation_id = $3;

-- name: acked
select acked from spool_streams where container_id = $1 and stream = $2;

-- name: take_first
insert into spool_streams as s (container_id, stream, allocation_id, acked) values ($1, $2, $3, 1)
on conflict (container_id, stream) do update set acked = 1 where s.acked = 0
returning acked;

-- name: take
update spool_streams set acked = $3 where container_id = $1 and stream = $2 and acked = $3 - 1 returning acked;

-- name: refuse
insert into spool_refusals (container_id, stream, n, message, fatal) values ($1, $2, $3, $4, $5) on conflict do nothing;

-- name: refused
select n, message, fatal from spool_refusals
where container_id = $1 and stream = $2 and n between $3 and $4
order by n;
