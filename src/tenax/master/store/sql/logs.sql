-- name: month_of_task
select (extract(year from created_at) * 100 + extract(month from created_at))::integer as month, clock_timestamp() as now
from tasks where task_id = $1;

-- name: member
select a.task_id, c.allocation_id,
       (extract(year from t.created_at) * 100 + extract(month from t.created_at))::integer as month,
       clock_timestamp() as now, s.stream, s.next_offset, s.carry
from containers c
join allocations a on a.allocation_id = c.allocation_id
join tasks t on t.task_id = a.task_id
left join log_streams s on s.container_id = c.container_id
where c.container_id = $1 and c.agent_id = $2;

-- name: begin_stream
-- Where it was begun meanwhile, the row is another one than was looked at.
insert into log_streams (container_id, stream, task_id, next_offset, carry) values ($1, $2, $3, $4, $5)
on conflict do nothing
returning next_offset;

-- name: advance
update log_streams set next_offset = $5, carry = $6
where container_id = $1 and stream = $2 and next_offset = $3 and carry = $4
returning next_offset;

-- name: begin_task
-- With the partition that its lines go to.
insert into log_tasks (task_id, month)
select $1, $2::integer from (select tenax_add_month('log_chunks', $2::integer)) part
on conflict do nothing;

-- name: number
update log_tasks set next_line = next_line + $2, loose_chunks = loose_chunks + 1
where task_id = $1
returning next_line - $2 as first_line, loose_chunks;

-- name: insert
insert into log_chunks (month, task_id, first_line, lines, first_at, last_at, levels, origins, meta, body)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: spans_up
select first_line, lines, first_at, last_at, levels, origins, meta, body from log_chunks
where month = $1 and task_id = $2 and first_line + lines - 1 > $3 and first_line < $4
  -- The one that holds line $3 + 1 begins at or before it.
  and first_line >= coalesce((select max(first_line) from log_chunks where month = $1 and task_id = $2 and first_line <= $3 + 1), 0)
order by first_line
limit $5;

-- name: spans_down
select first_line, lines, first_at, last_at, levels, origins, meta, body from log_chunks
where month = $1 and task_id = $2 and first_line + lines - 1 > $3 and first_line < $4
order by first_line desc
limit $5;

-- name: still_speaks
-- Seconds for which lines of a task may still come, $2 at most; null: it goes on.
select case when t.ended_at is not null
            then case when e.unmanaged then $2::float8 - extract(epoch from now() - t.ended_at) else 0 end
       end::float8 as seconds
from tasks t
left join trials r on r.id = t.trial_id
left join experiments e on e.id = r.experiment_id
where t.task_id = $1;

-- name: lock_loose
select joined_line from log_tasks where task_id = $1 for update;

-- name: drop
delete from log_chunks where month = $1 and task_id = $2 and first_line = any($3::bigint[]);

-- name: joined
update log_tasks
set joined_line = greatest(joined_line, $2),
    loose_chunks = (select count(*) from log_chunks c
                    where c.month = log_tasks.month and c.task_id = $1 and c.first_line >= $2)
where task_id = $1;

-- name: delete_chunks
delete from log_chunks where task_id = any($1::text[]);

-- name: delete_tasks
delete from log_tasks where task_id = any($1::text[]);
