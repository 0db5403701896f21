-- name: expired
-- Ended tasks whose output is kept no longer, with its lines; $1: days where nothing narrower says, $2: how many tasks.
select l.task_id, l.next_line as lines
from log_tasks l
join tasks t on t.task_id = l.task_id and t.ended_at is not null
left join trials tr on tr.id = t.trial_id
left join experiment_documents d on d.experiment_id = tr.experiment_id
cross join lateral (select coalesce(tr.log_retention_days, d.log_retention_days,
    (d.config -> 'retention_policy' ->> 'log_retention_days')::int, $1::int) as days) k
where k.days >= 0 and t.ended_at + make_interval(days => k.days) <= now()
order by t.ended_at
limit $2
for update of l skip locked;

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

-- name: delete_tasks
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
