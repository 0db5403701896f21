-- name: lock
-- As with experiments: what refers to it may be inserted meanwhile.
select id, experiment_id, request_id, task_id, state, wish, wish_reason, version, run_id, restarts, setbacks, invalid_hp, fatal
from trials where id = $1 for no key update;

-- name: create
insert into trials (experiment_id, request_id, journal_seq, task_id, hparams, seed, warm_start_checkpoint)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (experiment_id, journal_seq) do nothing
returning id;

-- name: create_task
insert into tasks (task_id, kind, job_id, trial_id)
select $1, 'TRIAL', job_id, $2 from experiments where id = $3;

-- name: raise_wish
update trials set wish = $2, version = version + 1
where id = $1 and state = 'ACTIVE'
  and array_position(array['RUN', 'STOP', 'CANCEL', 'KILL'], wish) < array_position(array['RUN', 'STOP', 'CANCEL', 'KILL'], $2)
returning id;

-- name: raise_wish_by_request
update trials set wish = $3, wish_reason = $4, version = version + 1
where experiment_id = $1 and request_id = $2 and state = 'ACTIVE'
  and array_position(array['RUN', 'STOP', 'CANCEL', 'KILL'], wish) < array_position(array['RUN', 'STOP', 'CANCEL', 'KILL'], $3)
returning id;

-- name: set_verdict
-- The task ends with its trial.
with ended as (
    update tasks set ended_at = now()
    where $3 <> 'ACTIVE' and task_id = (select task_id from trials where id = $1) and ended_at is null)
update trials
set state = $3, restarts = $4, reason = $5, setbacks = $6, version = version + 1,
    held_until = case when $7::float8 > 0 then now() + make_interval(secs => $7) end,
    ended_at = case when $3 = 'ACTIVE' then null else now() end
where id = $1 and version = $2
returning version;

-- name: put_fact
-- The same fact twice is one fact.
insert into search_inbox (experiment_id, trial_id, kind, at_key, fact)
values ($1, $2, $3, $4, $5)
on conflict (trial_id, kind, at_key) do nothing
returning id;

-- name: live_with_allocation
-- One row at least, without a trial where none lives; none if there is no such experiment.
select e.state as experiment_state, e.unmanaged,
       t.id, t.wish, t.wish_reason, t.invalid_hp, t.fatal, coalesce(t.held_until > now(), false) as held,
       a.allocation_id, a.state as allocation_state, a.preemption, a.ready_at is not null as ready,
       extract(epoch from a.preemption_deadline - now())::float8 as leaves_within_s,
       coalesce((select bool_and(c.want <> 'RUN' or c.state = 'TERMINATED')
                 from containers c where c.allocation_id = a.allocation_id), false) as ending
from experiments e
left join trials t on t.experiment_id = e.id and t.state = 'ACTIVE'
left join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED'
where e.id = $1
order by t.id;

-- name: at_once
-- Of the methods $2, which keep to their cap. Others may hold more than they were told: at least one for each bracket.
select case when s.searcher ->> 'name' = any($2::text[])
            then nullif((s.searcher ->> 'max_concurrent_trials')::int, 0) end
from (select config -> 'searcher' as searcher from experiment_documents where experiment_id = $1) s;

-- name: held_back
select coalesce(array_agg(distinct experiment_id) filter (where held_until <= now()), '{}') as released,
       extract(epoch from min(held_until) filter (where held_until > now()) - now())::float8 as next
from trials where state = 'ACTIVE' and held_until > now() - interval '1 minute';

-- name: next_run
update trials set run_id = run_id + 1, version = version + 1
where id = $1 and state = 'ACTIVE'
returning run_id, task_id;
