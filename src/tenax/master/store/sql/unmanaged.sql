-- name: mark_experiment
update experiments set unmanaged = true, state = 'ACTIVE', started_at = now(), external_id = $2, version = version + 1
where id = $1
returning job_id;

-- name: reserve_name
-- Two who bring the same name at once wait for one another.
select pg_advisory_xact_lock(hashtextextended('unmanaged ' || $1, 0));

-- name: experiment_named
select id from experiments where external_id = $1;

-- name: trial_named
select id from trials where experiment_id = $1 and external_id = $2;

-- name: next_place
select coalesce(max(journal_seq), 0) + 1 from trials where experiment_id = $1;

-- name: name_trial
update trials set external_id = $2 where id = $1;

-- name: add_trial
insert into unmanaged_trials (trial_id) values ($1);

-- name: lock_trial
select t.id, t.experiment_id, t.task_id, t.state, t.run_id, e.owner_id, e.unmanaged, coalesce(u.lost, false) as lost
from trials t join experiments e on e.id = t.experiment_id left join unmanaged_trials u on u.trial_id = t.id
where t.id = $1
for no key update of t;

-- name: trial
select t.id, t.experiment_id, t.task_id, t.state, t.run_id, e.owner_id, e.unmanaged, coalesce(u.lost, false) as lost
from trials t join experiments e on e.id = t.experiment_id left join unmanaged_trials u on u.trial_id = t.id
where t.id = $1;

-- name: trial_of_task
select id from trials where task_id = $1;

-- name: set_trial
update trials
set state = $2, reason = $3, version = version + 1,
    ended_at = case when $2 = 'ACTIVE' then null else coalesce($4, now()) end
where id = $1;

-- name: set_task
update tasks set ended_at = (select ended_at from trials where task_id = $1) where task_id = $1;

-- name: heard
insert into unmanaged_trials (trial_id, lost) values ($1, $2)
on conflict (trial_id) do update set heard_at = case when $2 then unmanaged_trials.heard_at else now() end, lost = $2;

-- name: begin_run
update trials set run_id = run_id + 1, version = version + 1 where id = $1 returning run_id;

-- name: states
select state from trials where experiment_id = $1;

-- name: set_experiment
update experiments
set state = $2, reason = $3, version = version + 1,
    ended_at = case when $2 = 'ACTIVE' then null else now() end
where id = $1 and state <> $2
returning id;

-- name: silent
-- Trials that nothing was heard of for $1 seconds, by heartbeat or by metrics, while this master has listened for $2.
select t.id, t.experiment_id, heard.at
from unmanaged_trials u
join trials t on t.id = u.trial_id and t.state = 'ACTIVE'
cross join lateral (
    select greatest(u.heard_at, (select max(g.reported_at) from metric_groups g where g.trial_id = t.id)) as at) heard
where $2::float8 >= $1::float8 and u.heard_at < now() - make_interval(secs => $1)
  and heard.at < now() - make_interval(secs => $1) and ($3::bigint is null or t.id = $3)
order by t.experiment_id, t.id;

-- name: put_source
insert into trial_sources (trial_id, checkpoint_uuid, kind, model_id, model_version) values ($1, $2, $3, $4, $5)
on conflict (trial_id, checkpoint_uuid) do update
set kind = excluded.kind, model_id = excluded.model_id, model_version = excluded.model_version;

-- name: version_exists
select exists (select 1 from model_versions where model_id = $1 and version = $2 and checkpoint_uuid = $3);

-- name: checkpoint_exists
select exists (select 1 from checkpoints where uuid = $1);
