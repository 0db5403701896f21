-- name: lock
-- As with experiments: what refers to it may be inserted meanwhile.
select id, experiment_id, request_id, task_id, state, wish, wish_reason, version, run_id, restarts, setbacks, invalid_hp, fatal
from trials where id = any($1::bigint[]) order by id for no key update;

-- name: create
-- In the order of the decisions, so that their numbers rise with it.
with made as (
    insert into trials (experiment_id, request_id, journal_seq, task_id, hparams, seed, warm_start_checkpoint)
    select $1, n.request_id, n.journal_seq, n.task_id, n.hparams, n.seed, $7
    from unnest($2::text[], $3::bigint[], $4::text[], $5::jsonb[], $6::bigint[])
        as n (request_id, journal_seq, task_id, hparams, seed)
    order by n.journal_seq
    on conflict (experiment_id, journal_seq) do nothing
    returning id, task_id),
begun as (
    insert into tasks (task_id, kind, job_id, trial_id)
    select made.task_id, 'TRIAL', e.job_id, made.id from made cross join experiments e where e.id = $1)
select id from made order by id;

-- name: log_of
-- The task in whose log the output of a trial `t` is.
(select coalesce(k.log_task_id, k.task_id) from tasks k where k.task_id = t.task_id)

-- name: raise_wish
update trials set wish = $2, version = version + 1
where id = $1 and state = 'ACTIVE'
  and array_position(array['RUN', 'STOP', 'CANCEL', 'KILL'], wish) < array_position(array['RUN', 'STOP', 'CANCEL', 'KILL'], $2)
returning id;

-- name: hold_by_request
select id from trials where experiment_id = $1 and request_id = any($2::text[]) and state = 'ACTIVE' order by id for no key update;

-- name: raise_wishes_by_request
update trials t set wish = $3, wish_reason = n.reason, version = t.version + 1
from unnest($2::text[], $4::text[]) as n (request_id, reason)
where t.experiment_id = $1 and t.request_id = n.request_id and t.state = 'ACTIVE'
  and array_position(array['RUN', 'STOP', 'CANCEL', 'KILL'], t.wish) < array_position(array['RUN', 'STOP', 'CANCEL', 'KILL'], $3);

-- name: set_verdicts
-- Their tasks end with them.
with verdicts as (
    select * from unnest($1::bigint[], $2::bigint[], $3::text[], $4::integer[], $5::text[], $6::integer[], $7::float8[])
        as n (id, version, state, restarts, reason, setbacks, hold_s)),
ended as (
    update tasks set ended_at = now()
    from verdicts n join trials t on t.id = n.id
    where n.state <> 'ACTIVE' and tasks.task_id = t.task_id and tasks.ended_at is null)
update trials t
set state = n.state, restarts = n.restarts, reason = n.reason, setbacks = n.setbacks, version = t.version + 1,
    held_until = case when n.hold_s > 0 then now() + make_interval(secs => n.hold_s) end,
    ended_at = case when n.state = 'ACTIVE' then null else now() end
from verdicts n
where t.id = n.id and t.version = n.version
returning t.id, {{log_of}} as log_task_id;

-- name: put_facts
-- The same fact twice is one fact.
insert into search_inbox (experiment_id, trial_id, kind, at_key, fact)
select n.experiment_id, n.trial_id, $3, n.at_key, n.fact
from unnest($1::bigint[], $2::bigint[], $4::bigint[], $5::jsonb[])
    with ordinality as n (experiment_id, trial_id, at_key, fact, place)
order by n.place
on conflict (trial_id, kind, at_key) do nothing
returning id;

-- name: live_with_allocation
-- One row at least, without a trial where none lives; none if there is no such experiment. Of all trials, or of those $2.
select e.state as experiment_state, e.unmanaged,
       t.id, t.wish, t.wish_reason, t.invalid_hp, t.fatal, coalesce(t.held_until > now(), false) as held,
       a.allocation_id, a.state as allocation_state, a.preemption, a.ready_at is not null as ready,
       extract(epoch from a.preemption_deadline - now())::float8 as leaves_within_s,
       coalesce((select bool_and(c.want <> 'RUN' or c.state = 'TERMINATED')
                 from containers c where c.allocation_id = a.allocation_id), false) as ending
from experiments e
left join trials t on t.experiment_id = e.id and t.state = 'ACTIVE' and ($2::bigint[] is null or t.id = any($2))
left join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED'
where e.id = $1
order by t.id;

-- name: at_once
select nullif((config -> 'searcher' ->> 'max_concurrent_trials')::int, 0) from experiment_documents where experiment_id = $1;

-- name: held_back
select coalesce(array_agg(distinct experiment_id) filter (where held_until <= now()), '{}') as released,
       extract(epoch from min(held_until) filter (where held_until > now()) - now())::float8 as next
from trials where state = 'ACTIVE' and held_until > now() - interval '1 minute';

-- name: hold
-- In the order in which everyone holds them, before an update, which takes its rows as they come.
select id from trials where id = any($1::bigint[]) and state = 'ACTIVE' order by id for no key update;

-- name: next_runs
update trials set run_id = run_id + 1, version = version + 1 where id = any($1::bigint[]) and state = 'ACTIVE'
returning id, run_id, task_id;

-- name: set_progress
insert into trial_telemetry (trial_id, progress) select id, $3 from trials where id = $1 and run_id = $2
on conflict (trial_id) do update set progress = excluded.progress, reported_at = now();

-- name: set_runner_state
insert into trial_telemetry (trial_id, runner_state) select id, $3 from trials where id = $1 and run_id = $2
on conflict (trial_id) do update set runner_state = excluded.runner_state, reported_at = now();

-- name: set_hang
insert into trial_telemetry (trial_id, hang, hang_run_id, hang_ends) select id, $3, $2, $4 from trials where id = $1 and run_id = $2
on conflict (trial_id) do update
set hang = excluded.hang, hang_run_id = excluded.hang_run_id, hang_ends = excluded.hang_ends, reported_at = now();

-- name: ended_by_hang
-- Of these trials, those whose current run was ended since it hung, and where it stood.
select t.id, m.hang from trials t
join trial_telemetry m on m.trial_id = t.id and m.hang_run_id = t.run_id
where t.id = any($1::bigint[]) and m.hang_ends;

-- name: coming_further
select t.id from trials t
where t.id = any($1::bigint[])
  and (exists (select 1 from checkpoints k where k.trial_id = t.id and k.run_id = t.run_id and k.state = 'COMPLETED')
       or exists (select 1 from tasks o join allocations a on a.task_id = o.task_id and a.run_id = t.run_id
                  join jobs j on j.job_id = o.job_id
                  where o.trial_id = t.id and (j.time_limit_s is null or j.time_limit_s > a.time_limit_s)));

-- name: before_any_step
-- Of these trials, those of which no run has reported a step, or saved.
select t.id from unnest($1::bigint[]) as t (id)
where not exists (select 1 from metric_groups g where g.trial_id = t.id and g.last_step >= 0)
  and not exists (select 1 from checkpoints k where k.trial_id = t.id);

-- name: repeated_failures
select experiment_id, place, trial_id from repeated_failures where experiment_id = any($1::bigint[]);

-- name: note_repeated_failures
insert into repeated_failures (experiment_id, place, trial_id)
select n.experiment_id, n.place, n.trial_id
from unnest($1::bigint[], $2::text[], $3::bigint[]) as n (experiment_id, place, trial_id)
on conflict do nothing;

-- name: set_invalid_hp
update trials set invalid_hp = true, version = version + 1
where id = $1 and run_id = $2 and state = 'ACTIVE' and not invalid_hp
returning id;

-- name: set_fatal
update trials set fatal = $3, version = version + 1
where id = $1 and run_id = $2 and state = 'ACTIVE' and fatal is null
returning id;

-- name: shown_state
-- What a trial `t` of an experiment `e` with the open attempt `a` is shown as: its own state once it has ended, else what
-- it is on the way to, else what its attempt does.
case when t.state <> 'ACTIVE' then t.state
     when e.unmanaged then case when t.run_id > 0 then 'RUNNING' else 'QUEUED' end
     when t.wish = 'KILL' or e.state = 'STOPPING_KILLED' then 'STOPPING_KILLED'
     when t.wish = 'CANCEL' or e.state = 'STOPPING_CANCELED' then 'STOPPING_CANCELED'
     when t.wish = 'STOP' then 'STOPPING_COMPLETED'
     when a.state is null then case when e.state = 'PAUSED' then 'PAUSED' else 'QUEUED' end
     when a.state = 'PENDING' then 'QUEUED'
     when a.state = 'ASSIGNED' then 'STARTING'
     when a.state = 'TERMINATING' then 'RUNNING'
     else a.state end

-- name: cannot_start
-- Why a trial `t`, which the platform ends before it runs again and again, does not start; null where that is not so.
case when t.state = 'ACTIVE' and t.setbacks > 1
     then format('it cannot start: %s (tried %s times so far, and again within a minute)', t.reason, t.setbacks) end

-- name: ran_s
-- Seconds in which a trial `t` of an experiment `e` ran: without waiting for slots and images, and without pauses.
case when e.unmanaged then coalesce(
         (select u.ran_s from unmanaged_trials u where u.trial_id = t.id),
         extract(epoch from coalesce(t.ended_at, now()) - t.created_at)::float8)
     else (select coalesce(sum(extract(epoch from coalesce(c.ended_at, now()) - c.started_at)), 0)::float8
           from tasks k join allocations a on a.task_id = k.task_id
           join containers c on c.allocation_id = a.allocation_id and c.rank = 0
           where k.trial_id = t.id and c.started_at is not null) end

-- name: total_batches
-- How far a trial `t` is, by what it has reported of its training.
coalesce((select max(g.newest_step) from metric_groups g where g.trial_id = t.id and g.newest_step >= 0
              and g.grp not in ('gpu', 'cpu', 'memory', 'disk', 'network')), 0)

-- name: views
select t.id, t.experiment_id, t.task_id, {{shown_state}} as shown_state, t.reason, t.hparams, t.restarts, t.run_id, t.created_at, t.ended_at,
       t.warm_start_checkpoint, e.state as experiment_state, e.owner_id, e.unmanaged,
       e.config_metric, e.smaller_is_better,
       {{total_batches}} as total_batches,
       -- In the order of their making: they are numbered.
       array(select o.task_id from tasks o where o.trial_id = t.id order by length(o.task_id), o.task_id) as task_ids,
       m.progress, coalesce(m.runner_state, '') as runner_state,
       m.latest_validation, m.best_validation, m.best_metric,
       ck.checkpoints, ck.checkpoint_bytes, held.seconds as held_s, {{ran_s}} as ran_s,
       a.state as attempt_state, case
           when a.state = 'TERMINATING' then nullif(a.exit_reason, '')
           when a.state is not null then q.reason
           -- As the rule has it: those that live longest have their turn.
           when t.state = 'ACTIVE' and t.wish = 'RUN' and e.state = 'ACTIVE' and e.most > 0
                and e.most <= (select count(*) from trials o
                               where o.experiment_id = t.experiment_id and o.state = 'ACTIVE' and o.id < t.id)
           then format('it waits for its turn: at most %s run at once (max_concurrent_trials)', e.most)
           else {{cannot_start}} end as wait_reason,
       best.uuid as best_uuid, best.state as best_state, best.reported_at as best_at, best.steps_completed as best_steps,
       best.resources as best_resources, best.metadata as best_metadata,
       coalesce(t.log_retention_days, e.log_retention_days) as log_retention_days, noted.metadata,
       (select l.policy from log_matches l where l.trial_id = t.id order by l.matched_at, l.policy limit 1) as log_policy
from trials t
join (select x.id, x.state, x.owner_id, x.unmanaged, d.config -> 'searcher' ->> 'metric' as config_metric,
             coalesce(d.log_retention_days, (d.config -> 'retention_policy' ->> 'log_retention_days')::smallint)
                 as log_retention_days,
             (d.config -> 'searcher' ->> 'max_concurrent_trials')::int as most,
             coalesce(d.config -> 'searcher' ->> 'smaller_is_better', 'true') = 'true' as smaller_is_better
      from experiments x join experiment_documents d on d.experiment_id = x.id) e on e.id = t.experiment_id
left join trial_telemetry m on m.trial_id = t.id
left join run_metadata noted on noted.trial_id = t.id
cross join lateral (
    select count(*)::int as checkpoints, coalesce(sum(c.size_bytes), 0)::bigint as checkpoint_bytes
    from checkpoints c where c.trial_id = t.id and c.state in ('COMPLETED', 'PARTIALLY_DELETED')) ck
cross join lateral (
    select coalesce(sum(extract(epoch from coalesce(a.ended_at, now()) - a.assigned_at)), 0)::float8 as seconds
    from tasks k join allocations a on a.task_id = k.task_id where k.trial_id = t.id and a.assigned_at is not null) held
left join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED' and t.state = 'ACTIVE'
left join allocation_waits q on q.allocation_id = a.allocation_id and a.state = 'PENDING'
left join lateral (
    -- The checkpoint at the best validation, or else the one whose validation is the best.
    select c.*
    from checkpoints c
    left join validations i on i.trial_id = t.id and i.step = c.steps_completed
    cross join lateral (select case when c.steps_completed = (m.best_validation ->> 'step')::bigint
                                    then m.best_metric else i.metric end as metric) v
    where c.trial_id = t.id and c.state = 'COMPLETED' and not c.superseded and v.metric is not null
    order by v.metric in ('NaN', 'Infinity', '-Infinity'),
             case when e.smaller_is_better then v.metric else - v.metric end, c.reported_at, c.uuid
    limit 1) best on true
where t.id = any($1::bigint[]);

-- name: of_experiment
from trials t
join experiments e on e.id = t.experiment_id
left join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED'
where t.experiment_id = $1

-- name: outcomes
-- What trials of an experiment tried and what came of it, the best first; those without a finite metric come last.
-- The metric of a few is known before the hyperparameters of any are read, and with $3 bytes of these there are no more.
with chosen as (
    select t.id, {{shown_state}} as shown_state, f.metric, y.smaller_is_better
    from trials t
    join experiments e on e.id = t.experiment_id
    join experiment_tallies y on y.experiment_id = t.experiment_id
    left join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED'
    left join trial_telemetry m on m.trial_id = t.id
    cross join lateral (
        select nullif(nullif(nullif(m.best_metric, 'NaN'), 'Infinity'), '-Infinity') as metric) f
    where t.experiment_id = $1
    order by f.metric is null, tenax_rank(f.metric, y.smaller_is_better), t.id
    limit $2),
tried as (
    select c.*, coalesce(h.hparams, '{}'::jsonb) as hparams,
           row_number() over best as place, sum(coalesce(h.bytes, 0)) over (best rows unbounded preceding) as bytes
    from chosen c
    left join lateral (
        select jsonb_object_agg(
                   r.key, coalesce(to_jsonb(r.number_value), to_jsonb(r.boolean_value), to_jsonb(r.text_value))) as hparams,
               sum(octet_length(r.key) + 20 + coalesce(octet_length(r.text_value), 0)) as bytes
        from run_hparams r where r.trial_id = c.id) h on true
    window best as (order by c.metric is null, tenax_rank(c.metric, c.smaller_is_better), c.id))
select id, shown_state, metric, hparams from tried where place = 1 or bytes <= $3 order by place;

-- name: owner
select e.owner_id, e.id as experiment_id from trials t join experiments e on e.id = t.experiment_id where t.id = $1;

-- name: has_ended
select state <> 'ACTIVE' from trials where id = $1;

-- name: sign_of_life
-- When a trial `t` was last heard of: it reported, a line came, it saved a checkpoint.
greatest((select max(g.reported_at) from metric_groups g
          where g.trial_id = t.id and g.grp not in ('gpu', 'cpu', 'memory', 'disk', 'network')),
         {{last_line_at}},
         (select max(c.reported_at) from checkpoints c where c.trial_id = t.id and c.state <> 'ACTIVE'))

-- name: last_line_at
(select l.last_at from log_tasks n
 join log_chunks l on l.month = n.month and l.task_id = n.task_id
 where n.task_id = {{log_of}} order by l.first_line desc limit 1)

-- name: vitals
-- Ages in seconds, by the clock here.
select extract(epoch from now() - case
           when t.state <> 'ACTIVE' then null
           when u.trial_id is not null then coalesce(u.begun_at, t.created_at)
           when a.state = 'RUNNING' then c.running_since end)::float8 as runs_s,
       extract(epoch from now() - (
           select max(g.reported_at) from metric_groups g
           where g.trial_id = t.id and g.grp not in ('gpu', 'cpu', 'memory', 'disk', 'network')))::float8 as reported_s,
       extract(epoch from now() - {{last_line_at}})::float8 as line_s,
       extract(epoch from now() - (
           select max(k.reported_at) from checkpoints k where k.trial_id = t.id and k.state = 'COMPLETED'))::float8
           as checkpoint_s,
       coalesce((select n.next_line from log_tasks n where n.task_id = {{log_of}}), 0) as lines,
       coalesce(a.slots, 0) as slots, coalesce(c.agents, '{}') as agents,
       (d.config ->> 'max_restarts')::int as max_restarts,
       case when a.state = 'RUNNING' and m.hang_run_id = t.run_id then m.hang else '' end as hang
from trials t
join experiment_documents d on d.experiment_id = t.experiment_id
left join trial_telemetry m on m.trial_id = t.id
left join unmanaged_trials u on u.trial_id = t.id
left join lateral (
    select x.* from tasks k join allocations x on x.task_id = k.task_id
    where k.trial_id = t.id order by x.run_id desc limit 1) a on true
left join lateral (
    select min(coalesce(o.started_at, o.created_at)) as running_since, array_agg(distinct o.agent_id) as agents
    from containers o where o.allocation_id = a.allocation_id) c on true
where t.id = $1;

-- name: silent
-- Trials that run, of the owner $1 or of all, and for how long they were silent: the longest first.
select t.id, t.experiment_id, d.name, extract(epoch from now() - heard.at)::float8 as silent_s
from allocations a
join tasks k on k.task_id = a.task_id
join trials t on t.id = k.trial_id and t.state = 'ACTIVE'
join experiments e on e.id = t.experiment_id
join experiment_documents d on d.experiment_id = e.id
cross join lateral (
    select greatest((select min(coalesce(o.started_at, o.created_at)) from containers o
                     where o.allocation_id = a.allocation_id), {{sign_of_life}}) as at) heard
where a.state = 'RUNNING' and ($1::bigint is null or e.owner_id = $1)
order by heard.at, t.id
limit $2;

-- name: history
-- What happened to a trial, the newest first; of what happened at once the later step of an attempt.
with attempts as (
    select a.*, c.started_at, c.agents
    from tasks k
    join allocations a on a.task_id = k.task_id
    cross join lateral (
        select min(o.started_at) as started_at, string_agg(distinct o.agent_id, ', ') as agents
        from containers o where o.allocation_id = a.allocation_id) c
    where k.trial_id = $1)
select h.at, h.kind, h.run_id, h.text, h.number from (
    select created_at as at, 'CREATED' as kind, 0 as run_id, '' as text, 0::bigint as number, 0 as place
    from trials where id = $1
    union all select requested_at, 'REQUESTED', run_id, '', slots, 1 from attempts
    union all select assigned_at, 'ASSIGNED', run_id, coalesce(agents, ''), slots, 2 from attempts
    union all select started_at, 'STARTED', run_id, coalesce(agents, ''), slots, 3 from attempts
    union all select a.started_at, 'RESTORED', a.run_id, '', min(m.step), 4
              from metric_cuts m join attempts a on a.run_id = m.run_id where m.trial_id = $1 group by a.started_at, a.run_id
    union all select reported_at, 'CHECKPOINT', coalesce(run_id, 0), uuid, steps_completed, 5
              from checkpoints where trial_id = $1 and state <> 'ACTIVE'
    union all select matched_at, 'LOG_POLICY', run_id, policy || ': ' || line, 0, 6 from log_matches where trial_id = $1
    union all select ended_at, case when preemption = 'NONE' then 'ENDED' else 'PREEMPTED' end, run_id,
                     concat_ws('; ', nullif(preemption_reason, ''), nullif(exit_reason, '')), 0, 7 from attempts
    union all select ended_at, state, 0, reason, 0, 8 from trials where id = $1) h
where h.at is not null
order by h.at desc, h.place desc, h.number desc
limit $2;
