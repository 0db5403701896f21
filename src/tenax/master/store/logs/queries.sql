-- name: month_of
-- Of the task `t`, whose log it is.
(extract(year from t.created_at) * 100 + extract(month from t.created_at))::integer as month

-- name: places
-- Where output of tasks is kept.
select k.task_id, t.task_id as log_task_id, {{month_of}}, clock_timestamp() as now
from tasks k join tasks t on t.task_id = coalesce(k.log_task_id, k.task_id)
where k.task_id = any($1::text[]) order by k.task_id;

-- name: member
select a.task_id, t.task_id as log_task_id, c.allocation_id, {{month_of}}, clock_timestamp() as now,
       s.stream, s.next_offset, s.carry
from containers c
join allocations a on a.allocation_id = c.allocation_id
join tasks k on k.task_id = a.task_id
join tasks t on t.task_id = coalesce(k.log_task_id, k.task_id)
left join log_streams s on s.container_id = c.container_id
where c.container_id = $1 and c.agent_id = $2;

-- name: output_of
select stream, next_offset, carry from log_streams where container_id = $1;

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
where not exists (select 1 from log_tasks where task_id = $1)
on conflict do nothing;

-- name: begin_tasks
-- With the partitions that their lines go to.
with parts as (select month, tenax_add_month('log_chunks', month) from (select distinct unnest($2::integer[]) as month) m)
insert into log_tasks (task_id, month)
select n.task_id, n.month from unnest($1::text[], $2::integer[]) as n (task_id, month) join parts using (month)
order by n.task_id
on conflict do nothing;

-- name: hold
-- In the order in which everyone holds them, before an update, which takes its rows as they come.
select task_id from log_tasks where task_id = any($1::text[]) order by task_id for no key update;

-- name: next_lines
-- For so many lines of each.
update log_tasks t set next_line = t.next_line + n.lines, loose_chunks = t.loose_chunks + 1
from unnest($1::text[], $2::integer[]) as n (task_id, lines)
where t.task_id = n.task_id
returning t.task_id, t.next_line - n.lines as first_line;

-- name: insert_many
-- Origins as text: the driver takes a list of lists for an array of two dimensions.
insert into log_chunks (month, task_id, first_line, lines, first_at, last_at, levels, origins, meta, body)
select n.month, n.task_id, n.first_line, n.lines, n.first_at, n.last_at, n.levels, n.origins::jsonb, n.meta, n.body
from unnest($1::integer[], $2::text[], $3::bigint[], $4::integer[], $5::timestamptz[], $6::timestamptz[],
            $7::integer[], $8::text[], $9::bytea[], $10::bytea[])
    as n (month, task_id, first_line, lines, first_at, last_at, levels, origins, meta, body);

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

-- name: last_spans_of
select first_line, lines, first_at, last_at, levels, origins, meta, body from log_chunks
where month = $1 and task_id = $2
  and exists (select 1 from jsonb_array_elements(origins) o where o ->> 'container_id' = any($3::text[]))
order by first_line desc
limit $4;

-- name: total
select next_line from log_tasks where task_id = $1;

-- name: firsts_of
-- Of the chunks that hold these lines.
select distinct (select max(first_line) from log_chunks where month = $1 and task_id = $2 and first_line <= n) as first_line
from unnest($3::bigint[]) n;

-- name: spans_at
select first_line, lines, first_at, last_at, levels, origins, meta, body from log_chunks
where month = $1 and task_id = $2 and first_line = any($3::bigint[])
order by first_line;

-- name: spans_with
-- As spans_up, of chunks with one of some levels ($6: a bit for each, 0: any); $7: with what the lines say.
select first_line, lines, first_at, last_at, levels, origins, meta, case when $7 then body else ''::bytea end as body
from log_chunks
where month = $1 and task_id = $2 and first_line + lines - 1 > $3 and first_line < $4 and ($6::integer = 0 or levels & $6 <> 0)
  and first_line >= coalesce((select max(first_line) from log_chunks where month = $1 and task_id = $2 and first_line <= $3 + 1), 0)
order by first_line
limit $5;

-- name: span_at_time
-- The last one that was begun by then.
select first_line, lines, first_at, last_at, levels, origins, meta, ''::bytea as body from log_chunks
where month = $1 and task_id = $2 and first_at <= $3
order by first_line desc
limit 1;

-- name: outline
select first_line, lines, first_at, last_at from log_chunks where month = $1 and task_id = $2 order by first_line;

-- name: heads_at
select first_line, lines, first_at, last_at, levels, origins, meta, ''::bytea as body from log_chunks
where month = $1 and task_id = $2 and first_line = any($3::bigint[])
order by first_line;

-- name: unfinished
-- Beginnings of lines whose end has not come, of the attempts that go on.
select c.container_id, c.allocation_id, c.agent_id, s.stream, s.carry, clock_timestamp() as now
from allocations a
join containers c on c.allocation_id = a.allocation_id
join log_streams s on s.container_id = c.container_id
where a.task_id = $1 and a.ended_at is null and s.carry <> ''
order by c.rank, s.stream
limit $2;

-- name: reopen
update log_tasks set ended_at = null where task_id = any($1::text[]) and ended_at is not null;

-- name: still_speaks
-- Seconds for which lines of a task, or ($3) of the newest task of its trial, may still come, $2 at most; null: it goes on.
select case when t.ended_at is not null
            then case when e.unmanaged then $2::float8 - extract(epoch from now() - t.ended_at) else 0 end
       end::float8 as seconds
from tasks t
left join trials r on r.id = t.trial_id
left join experiments e on e.id = r.experiment_id
where t.task_id = case when $3 then coalesce((select n.task_id from tasks k join trials n on n.id = k.trial_id
                                              where k.task_id = $1), $1) else $1 end;

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
-- Of their months alone.
delete from log_chunks c using log_tasks l where l.task_id = any($1::text[]) and c.month = l.month and c.task_id = l.task_id;

-- name: delete_tasks
delete from log_tasks where task_id = any($1::text[]);

-- name: origins
select distinct origin from log_chunks, jsonb_array_elements(origins) origin where month = $1 and task_id = $2;

-- name: task_of_trial
select task_id from trials where id = $1;

-- name: watched
-- Of a trial's task: its policies, and those that have matched.
select k.trial_id, t.run_id, d.config -> 'log_policies' as policies,
       coalesce((select jsonb_agg(jsonb_build_array(m.policy, m.action, m.agent_id))
                 from log_matches m where m.trial_id = k.trial_id), '[]') as matched,
       exists (select 1 from webhook_triggers w where w.kind = 'TASK_LOG') as any_triggers
from tasks k
join trials t on t.id = k.trial_id
join experiment_documents d on d.experiment_id = t.experiment_id
where k.task_id = $1;

-- name: record
insert into log_matches (trial_id, policy, action, agent_id, run_id, line)
select t.id, $2, $3, $4, t.run_id, $5 from trials t where t.id = $1
on conflict do nothing
returning policy;

-- name: no_retry
select distinct on (trial_id) trial_id, policy from log_matches
where trial_id = any($1::bigint[]) and action = 'CANCEL_RETRIES' order by trial_id, matched_at, policy;

-- name: excluded
select trial_id, array_agg(distinct agent_id order by agent_id) as agents from log_matches
where trial_id = any($1::bigint[]) and action = 'EXCLUDE_NODE' and agent_id <> ''
group by trial_id;

-- name: expired
-- Ended tasks whose output is kept no longer, with its lines; $1: days where nothing narrower says, $2: how many tasks.
-- The ones that ended first, of each number of days that is said anywhere: what is still kept is not looked at.
with recursive said as (
    (select keep_days from log_tasks where ended_at is not null and keep_days >= 0 order by keep_days limit 1)
    union all
    select (select l.keep_days from log_tasks l where l.ended_at is not null and l.keep_days > s.keep_days
            order by l.keep_days limit 1)
    from said s where s.keep_days is not null),
due as (
    select l.task_id
    from said s cross join lateral (
        select task_id from log_tasks
        where keep_days = s.keep_days and ended_at <= now() - make_interval(days => s.keep_days)
        order by ended_at limit $2) l
    union all
    (select task_id from log_tasks
     where keep_days is null and $1::int >= 0 and ended_at <= now() - make_interval(days => $1)
     order by ended_at limit $2))
select l.task_id, l.next_line as lines
from log_tasks l
where l.task_id = any(array(select task_id from due limit $2))
for update of l skip locked;

-- name: drop_log_months
-- Empty ones, but for those that a task has begun to speak in.
select tenax_drop_months(array['log_chunks'], $1, 'log_tasks');

-- name: outlived
-- Launched tasks that ended so long ago that their output is kept no longer, and of which nothing is left that somebody
-- could ask for; $1: days that output is kept, $2: how many tasks, $3: days for the cluster's own where that is for ever.
select l.task_id, t.job_id, l.context_hash
from launched_tasks l
join tasks t on t.task_id = l.task_id
cross join lateral (select case when $1::int < 0 and t.kind = 'CHECKPOINT_GC' then $3::int else $1::int end as days) k
where k.days >= 0 and l.ended_at + make_interval(days => greatest(1, k.days)) <= now()
  and not exists (select 1 from allocations a join containers c on c.allocation_id = a.allocation_id
                  where a.task_id = l.task_id and c.gone_at is null)
  and not exists (select 1 from checkpoints c where c.task_id = l.task_id and c.state <> 'DELETED')
  and not exists (select 1 from checkpoint_uploads u where u.task_id = l.task_id and u.collected_at is null)
  and not exists (select 1 from launched_tasks c where c.parent_id = l.task_id and c.ended_at is null)
order by l.ended_at
limit $2
for update of l skip locked;

-- name: retention_delete_tasks
delete from tasks where task_id = any($1::text[]);

-- name: delete_jobs
delete from jobs where job_id = any($1::text[]);

-- name: set_trial
update trials set log_retention_days = $2 where id = $1 returning id;

-- name: of_trial
-- Days that the output of a trial is kept, and those that are left of them since its end.
select k.days, t.ended_at,
       ceil(extract(epoch from t.ended_at + make_interval(days => greatest(k.days, 0)) - now()) / 86400)::int as remaining
from trials t
join experiment_documents d on d.experiment_id = t.experiment_id
cross join lateral (select coalesce(t.log_retention_days, d.log_retention_days,
    (d.config -> 'retention_policy' ->> 'log_retention_days')::int, $2::int) as days) k
where t.id = $1;

-- name: last_done
select done_at, now() as now from (select now()) n left join chores on name = $1;

-- name: done
insert into chores (name, done_at) values ($1, now())
on conflict (name) do update set done_at = greatest(chores.done_at, excluded.done_at);

-- name: acked_of_member
select coalesce(s.acked, 0) as acked
from containers c left join spool_streams s on s.container_id = c.container_id and s.stream = $2
where c.container_id = $1 and c.allocation_id = $3;

-- name: begin_of_trial
insert into spool_streams (container_id, stream, trial_id, acked) values ($1, $2, $3, 0) on conflict do nothing;

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
