-- name: upsert
-- A run is superseded when its trial has a newer one. A repeated report changes nothing but what it holds; what
-- was deleted meanwhile, or is of another task that is not of the same trial, stays as it is.
insert into checkpoints (uuid, task_id, allocation_id, trial_id, run_id, storage_id, state, superseded,
                         steps_completed, metadata, resources, size_bytes, upload_s)
select $1, $2, $3, $4, $5, $6, $7,
       coalesce((select run_id from trials where id = $4) > $5, false),
       $8, $9, $10, $11, $12
-- Beside the checkpoints the directory of TensorBoard's files is named by it.
where not exists (select 1 from cluster where cluster_id::text = lower($1))
on conflict (uuid) do update
set state = excluded.state, steps_completed = excluded.steps_completed, metadata = excluded.metadata,
    resources = excluded.resources, size_bytes = excluded.size_bytes, storage_id = excluded.storage_id,
    upload_s = coalesce(excluded.upload_s, checkpoints.upload_s), version = checkpoints.version + 1
where (checkpoints.task_id = excluded.task_id or checkpoints.trial_id = excluded.trial_id) and checkpoints.state in ('ACTIVE', 'COMPLETED', 'ERROR')
returning uuid;

-- name: get
select * from checkpoints where uuid = $1;

-- name: lock
select * from checkpoints where uuid = $1 for no key update;

-- name: is_in_doubt
-- It was reported before the database was put back to a copy.
select coalesce(c.reported_at < (select restored_at from cluster), false) from checkpoints c where c.uuid = $1;

-- name: latest
select * from checkpoints
where trial_id = $1 and state = 'COMPLETED' and not superseded and not removal_requested
order by steps_completed desc, reported_at desc
limit 1;

-- name: set_files
update checkpoints set state = $2, resources = $3, size_bytes = $4, version = version + 1 where uuid = $1 returning *;

-- name: set_metadata
update checkpoints set metadata = $2, version = version + 1 where uuid = $1 returning *;

-- name: trials_using
select distinct trial_id from trial_sources
where checkpoint_uuid = $1 and ($2::text is null or kind = $2) order by trial_id;

-- name: known_storage
select id from storage_backends where config = $1;

-- name: storage_backend
-- Made by somebody else meanwhile: the update that changes nothing makes an existing row come back.
insert into storage_backends (config) values ($1)
on conflict (config) do update set config = excluded.config
returning id;

-- name: registered
-- Which of these checkpoints are registered, each with one version that names it.
select distinct on (v.checkpoint_uuid) v.checkpoint_uuid as uuid, m.name as model, v.version
from model_versions v join models m on m.id = v.model_id
where v.checkpoint_uuid = any($1::text[])
order by v.checkpoint_uuid, m.id, v.version;

-- name: registered_of_experiment
select c.uuid, m.name as model, v.version
from trials t
join checkpoints c on c.trial_id = t.id
join model_versions v on v.checkpoint_uuid = c.uuid
join models m on m.id = v.model_id
where t.experiment_id = $1
order by c.uuid, m.id, v.version limit 1;

-- name: mark
insert into garbage_due as g (experiment_id, asked)
select id, $2 from experiments where id = $1
on conflict (experiment_id) do update set stamp = g.stamp + 1, asked = g.asked or excluded.asked;

-- name: mark_by_trials
insert into garbage_due as g (experiment_id, asked)
select distinct t.experiment_id, false from trials t
where t.id = any($1::bigint[])
  and (t.warm_start_checkpoint is not null
       or exists (select 1 from checkpoints c where c.trial_id = t.id)
       or exists (select 1 from tasks k join checkpoint_uploads u on u.task_id = k.task_id where k.trial_id = t.id))
order by t.experiment_id
on conflict (experiment_id) do update set stamp = g.stamp + 1
returning experiment_id;

-- name: marked
select experiment_id from garbage_due order by experiment_id limit $1;

-- name: mark_of
select stamp, asked from garbage_due where experiment_id = $1;

-- name: clear_mark
-- Unless it was marked again meanwhile.
delete from garbage_due where experiment_id = $1 and stamp = $2;

-- name: policy
select d.config, e.unmanaged
from experiments e join experiment_documents d on d.experiment_id = e.id
where e.id = $1;

-- name: candidates
-- The metric at its step: as lists of checkpoints show it.
select c.uuid, c.trial_id, c.steps_completed, c.state, c.superseded, extract(epoch from c.reported_at)::float8 as reported,
       c.size_bytes,
       case when (m.best_validation ->> 'step')::bigint = c.steps_completed then m.best_metric
            else i.metric end as metric,
       (select 'trial ' || o.id || ' of experiment ' || o.experiment_id
        from trials o
        where o.warm_start_checkpoint = c.uuid and (o.experiment_id <> t.experiment_id or o.state = 'ACTIVE')
        order by o.id limit 1) as source_of
from trials t
join checkpoints c on c.trial_id = t.id
left join trial_telemetry m on m.trial_id = t.id
left join validations i on i.trial_id = t.id and i.step = c.steps_completed
where t.experiment_id = $1 and c.state in ('COMPLETED', 'PARTIALLY_DELETED') and not c.removal_requested
order by c.trial_id, c.steps_completed, c.reported_at, c.uuid;

-- name: live
-- Trials that have not ended, and up to which step each has reported the searcher's metric.
select t.id, greatest((m.latest_validation ->> 'step')::bigint,
                      (select max(i.step) from validations i where i.trial_id = t.id)) as validated_to
from trials t left join trial_telemetry m on m.trial_id = t.id
where t.experiment_id = $1 and t.state = 'ACTIVE';

-- name: request_removals
-- Also where a narrower removal waits: what is requested last is done. All of the files ($5) stay all of them.
with requested as (
    update checkpoints c set removal_requested = true, version = version + 1
    where uuid = any($1::text[]) and state in ('COMPLETED', 'PARTIALLY_DELETED', 'ERROR', 'ACTIVE')
    returning c.uuid)
insert into removals (uuid, checkpoint, reason, globs, retry_at)
select d.uuid, d.uuid, w.reason, $3::text[], now() + make_interval(secs => $4)
from requested d join unnest($1::text[], $2::text[]) w (uuid, reason) on w.uuid = d.uuid
order by d.uuid
on conflict (uuid) do update
set reason = excluded.reason, globs = case when removals.globs = $5 then removals.globs else excluded.globs end, retry_at = excluded.retry_at, tries = 0, delegated = false,
    -- A task that it is assigned to may delete less: its report does not count any more.
    task_id = null
returning uuid;

-- name: announce
-- One that broke off is deleted: nobody announces what is there already.
insert into checkpoint_uploads (uuid, task_id, allocation_id, storage_id)
select $1, $2, $3, $4
where not exists (select 1 from checkpoints where uuid = $1)
  and not exists (select 1 from cluster where cluster_id::text = lower($1))
on conflict (uuid) do nothing;

-- name: withdraw
-- The task itself deleted what it had uploaded.
delete from checkpoint_uploads u
where u.uuid = $1 and u.task_id = $2 and not exists (select 1 from removals r where r.upload = u.uuid);

-- name: lock_upload
-- Held until the report is stored, so that it is not given up meanwhile.
select collected_at, task_id, extract(epoch from now() - announced_at)::float8 as took_s
from checkpoint_uploads where uuid = $1 for update;

-- name: is_given_up
select exists (select 1 from removals where upload = $1);

-- name: drop_upload
delete from checkpoint_uploads where uuid = $1;

-- name: request_abandoned_removals
-- Nobody is left who could complete them: the attempt has ended and nothing of it is on a machine any more. Where an agent
-- never came back to say so, a week is waited.
insert into removals (uuid, upload, reason)
select o.uuid, o.uuid, 'its upload began, and its task ended without reporting it'
from (
    select u.uuid
    from checkpoint_uploads u
    join allocations a on a.allocation_id = u.allocation_id
    where u.collected_at is null and a.state = 'TERMINATED'
      and not exists (select 1 from checkpoints c where c.uuid = u.uuid)
      and (a.ended_at < now() - interval '7 days'
           or not exists (select 1 from containers c where c.allocation_id = a.allocation_id and c.gone_at is null))
    for update of u skip locked) o
order by o.uuid
on conflict do nothing
returning uuid;

-- name: any_upload
select exists (select 1 from checkpoint_uploads where collected_at is null);

-- name: request_upload_removals
insert into removals (uuid, upload, reason)
select uuid, uuid, $2 from checkpoint_uploads where uuid = any($1::text[]) and collected_at is null
order by uuid
on conflict do nothing;

-- name: any_delegated
select exists (select 1 from removals where (delegated and retry_at <= now()) or task_id is not null);

-- name: due_removals
select uuid from removals
where retry_at <= now() and task_id is null and not delegated
order by retry_at, uuid limit $1;

-- name: next_retry
select extract(epoch from min(retry_at) - now())::float8 from removals where retry_at > now() and task_id is null;

-- name: hold_checkpoints
-- Before their removals, in the order in which everyone holds them.
select uuid from checkpoints where uuid = any($1::text[]) order by uuid for no key update;

-- name: lock_checkpoint
-- Before its removal, as whoever decides one does.
select 1 from checkpoints where uuid = $1 for no key update;

-- name: begin_removal
-- From here on it cannot be called off. What has become needed since it was decided is kept.
with called_off as (
    delete from removals r
    where r.uuid = $1 and r.begun_at is null and r.checkpoint is not null
      and (exists (select 1 from model_versions v where v.checkpoint_uuid = r.checkpoint)
           or exists (select 1 from trials t where t.warm_start_checkpoint = r.checkpoint and t.state = 'ACTIVE'))
    returning r.checkpoint),
kept as (
    update checkpoints set removal_requested = false, version = version + 1 where uuid in (select checkpoint from called_off)),
begun as (
    update removals set begun_at = coalesce(begun_at, now())
    where uuid = $1 and task_id is null and uuid not in (select checkpoint from called_off)
    -- Begun in this transaction.
    returning uuid, checkpoint, upload, globs, reason, tries, failure, begun_at = now() as fresh)
select b.*, coalesce(c.task_id, u.task_id) as task_id, t.experiment_id, j.owner_id, d.config, s.config as storage,
       c.resources, coalesce(c.allocation_id, u.allocation_id) is null as elsewhere
from begun b
left join checkpoints c on c.uuid = b.checkpoint
left join checkpoint_uploads u on u.uuid = b.upload
left join tasks k on k.task_id = coalesce(c.task_id, u.task_id)
left join jobs j on j.job_id = k.job_id
left join trials t on t.id = k.trial_id
left join experiment_documents d on d.experiment_id = t.experiment_id
left join storage_backends s on s.id = coalesce(c.storage_id, u.storage_id);

-- name: removal_failed
-- One that could not even begin may still be called off.
update removals
set tries = tries + 1, failure = $2, retry_at = now() + make_interval(secs => $3),
    begun_at = case when $4 then null else begun_at end, delegated = false, task_id = null
where uuid = $1;

-- name: end_removal
delete from removals where uuid = $1 and ($2::text[] is null or globs = $2) returning uuid;

-- name: drop_removal
delete from removals where uuid = $1;

-- name: removal_done
-- What is left of its files stays.
update checkpoints set removal_requested = false, version = version + 1 where uuid = $1 and removal_requested;

-- name: upload_removed
update checkpoint_uploads set collected_at = now() where uuid = $1;

-- name: removals_of_experiment
-- Of its checkpoints and uploads.
select r.uuid, r.upload is not null as unreported, r.reason, r.tries, r.failure, r.retry_at, r.asked_at
from removals r
left join checkpoints c on c.uuid = r.checkpoint
left join checkpoint_uploads u on u.uuid = r.upload
join tasks k on k.task_id = coalesce(c.task_id, u.task_id)
join trials t on t.id = k.trial_id
where t.experiment_id = $1
order by r.asked_at, r.uuid;

-- name: uploads
-- Files that an experiment's tasks began to upload, and that are no checkpoints.
select u.uuid, s.config as storage
from checkpoint_uploads u
join tasks k on k.task_id = u.task_id
join trials t on t.id = k.trial_id
join storage_backends s on s.id = u.storage_id
where t.experiment_id = $1 and u.collected_at is null and not exists (select 1 from checkpoints c where c.uuid = u.uuid)
order by u.uuid;

-- name: set_policy
update experiment_documents
set config = jsonb_set(config, '{checkpoint_storage}', (config -> 'checkpoint_storage') || $2::jsonb)
where experiment_id = $1 and jsonb_typeof(config -> 'checkpoint_storage') = 'object'
returning experiment_id;

-- name: delegate
-- What the master cannot reach, an agent may.
update removals
set delegated = true, begun_at = case when $3 then null else begun_at end, retry_at = now(),
    failure = case when failure = '' then $2 else failure end
where uuid = $1 and task_id is null;

-- name: unassigned
-- Removals for a task on an agent that no task has yet; and what the task that wrote the files ran with.
-- What is reported of a storage has no credentials: where its experiment's section is of the same place, that is taken.
-- A section may name the account by its connection string alone.
select r.uuid, r.globs, j.owner_id, t.experiment_id, j.pool,
       case when x.config -> 'checkpoint_storage' @> s.config - 'account_url'
               and coalesce(x.config #>> '{checkpoint_storage,account_url}' = s.config ->> 'account_url', true)
           then x.config -> 'checkpoint_storage'
           else coalesce(s.config, d.config -> 'checkpoint_storage') end as storage,
       x.config -> 'environment' as environment, x.config -> 'bind_mounts' as bind_mounts,
       coalesce(p.workspace_id, l.workspace_id) as workspace_id
from removals r
left join checkpoints c on c.uuid = r.checkpoint
left join checkpoint_uploads u on u.uuid = r.upload
join tasks k on k.task_id = coalesce(c.task_id, u.task_id)
join jobs j on j.job_id = k.job_id
left join trials t on t.id = k.trial_id
left join experiments e on e.id = t.experiment_id
left join projects p on p.id = e.project_id
left join launched_tasks l on l.task_id = k.task_id
left join experiment_documents d on d.experiment_id = t.experiment_id
left join storage_backends s on s.id = coalesce(c.storage_id, u.storage_id)
cross join lateral (select coalesce(d.config, k.spec -> 'config') as config) x
where r.delegated and r.task_id is null and r.retry_at <= now()
order by r.asked_at, r.uuid
limit $1;

-- name: hold_unassigned
-- All that is given to tasks in one transaction, in the order in which whoever requests removals holds them.
select uuid from removals
where uuid = any($1::text[]) and delegated and task_id is null
order by uuid for no key update;

-- name: tensorboards
-- Of experiments that are being deleted: their TensorBoard files go with their last checkpoints.
select (select cluster_id::text from cluster) || '/tensorboard/experiment/' || id as path
from experiments where id = any($1::bigint[]) and state = 'DELETING' order by id;

-- name: assign
-- In the order in which everyone holds them.
with held as (
    select uuid from removals where uuid = any($1::text[]) and task_id is null order by uuid for update)
update removals r set task_id = $2, begun_at = coalesce(begun_at, now()) from held where r.uuid = held.uuid;

-- name: assigned
-- Removals that a task may report about, locked.
select r.uuid, r.upload is not null as unreported, r.tries, r.failure, r.reason, coalesce(c.task_id, u.task_id) as task_id
from removals r
left join checkpoints c on c.uuid = r.checkpoint
left join checkpoint_uploads u on u.uuid = r.upload
where r.task_id = $1 and r.uuid = any($2::text[])
order by r.uuid
for no key update of r;

-- name: orphaned
-- Their task has ended without reporting them.
select r.uuid, r.task_id as by_task, l.reason as ended, r.tries, r.failure
from removals r
join tasks k on k.task_id = r.task_id and k.ended_at is not null
left join launched_tasks l on l.task_id = k.task_id
order by r.uuid
limit $1;

-- name: columns
select c.uuid, c.task_id, c.allocation_id, c.trial_id, c.storage_id, c.state, c.superseded, c.steps_completed, c.metadata,
       c.resources, c.size_bytes, c.reported_at, t.experiment_id, coalesce(e.owner_id, j.owner_id) as owner_id, t.hparams, d.config,
       d.original_config, s.config as storage, v.metric, v.metrics, r.reason as removal_reason, r.failure as removal_failure

-- name: uuid
select c.uuid

-- name: measured
select c.uuid, c.trial_id, c.state, c.steps_completed, c.reported_at, v.metrics

-- name: sources
from checkpoints c
join tasks k on k.task_id = c.task_id
join jobs j on j.job_id = k.job_id
left join trials t on t.id = c.trial_id
left join experiments e on e.id = t.experiment_id
left join experiment_documents d on d.experiment_id = e.id
left join storage_backends s on s.id = c.storage_id
left join removals r on r.checkpoint = c.uuid
left join trial_telemetry m on m.trial_id = t.id
left join validations i on i.trial_id = t.id and i.step = c.steps_completed
cross join lateral (
    -- The searcher's metric at its step: as the newest run reported it where that is known, else as it was first.
    select case when (m.best_validation ->> 'step')::bigint = c.steps_completed then m.best_metric
                else i.metric end as metric,
           case when (m.best_validation ->> 'step')::bigint = c.steps_completed then m.best_validation -> 'metrics'
                when (m.latest_validation ->> 'step')::bigint = c.steps_completed then m.latest_validation -> 'metrics'
                when i.metric is not null
                then jsonb_build_object(d.config -> 'searcher' ->> 'metric', i.metric) end as metrics) v

-- name: matching
where ($1::bigint is null or t.experiment_id = $1)
  and ($2::bigint is null or c.trial_id = $2)
  and ($3::text[] is null or c.state = any($3))
  and ($4::text[] is null or c.uuid = any($4))

-- name: owners
-- Nothing else of them: thousands are acted upon at once.
select c.uuid, t.experiment_id, coalesce(e.owner_id, j.owner_id) as owner_id
from checkpoints c
join tasks k on k.task_id = c.task_id
join jobs j on j.job_id = k.job_id
left join trials t on t.id = c.trial_id
left join experiments e on e.id = t.experiment_id
where c.uuid = any($1::text[]);

-- name: needed_by
-- The first of the checkpoints from which a live trial may start, and that trial.
select n.uuid, n.trial_id from (
    select c.uuid, t.id as trial_id
    from trials t join checkpoints c on c.trial_id = t.id
    where c.uuid = any($1::text[]) and t.state = 'ACTIVE' and c.state = 'COMPLETED' and not c.superseded
      and not exists (
        select 1 from checkpoints o
        where o.trial_id = t.id and o.state = 'COMPLETED' and not o.superseded and not o.removal_requested and o.uuid <> c.uuid
          and (o.steps_completed, o.reported_at) > (c.steps_completed, c.reported_at))
    union all
    select t.warm_start_checkpoint, t.id from trials t where t.warm_start_checkpoint = any($1::text[]) and t.state = 'ACTIVE') n
order by n.uuid, n.trial_id
limit 1;

-- name: tail
-- Before the blocks: what is packed meanwhile is read twice then, and never missed.
select t.trial_id, t.grp, t.run_id, t.first_ord, t.steps, t.times, t.bodies, null::bytea as batches
from unnest($1::integer[], $2::bigint[], $3::text[]) w (month, trial, grp)
join metric_tail t on t.month = w.month and t.trial_id = w.trial and t.grp = w.grp
order by t.trial_id, t.grp, t.first_ord;

-- name: blocks
-- Those that may hold a report of one of the steps; $4: steps of each group.
select distinct on (b.trial_id, b.grp, b.first_ord)
       b.month, b.trial_id, b.grp, b.run_id, b.first_ord, b.reports, b.steps, b.times, null::bytea as batches
from unnest($1::integer[], $2::bigint[], $3::text[], $4::bigint[]) w (month, trial, grp, step)
join metric_blocks b on b.month = w.month and b.trial_id = w.trial and b.grp = w.grp
                    and w.step between b.first_step and b.last_step
order by b.trial_id, b.grp, b.first_ord;

-- name: chunks
select c.trial_id, c.grp, c.first_ord, c.metric, c.present, c.data
from unnest($1::integer[], $2::bigint[], $3::text[], $4::bigint[]) w (month, trial, grp, first_ord)
join metric_chunks c on c.month = w.month and c.trial_id = w.trial and c.grp = w.grp and c.first_ord = w.first_ord
order by c.trial_id, c.grp, c.first_ord;

-- name: beginning_with
-- As the index has it: two at most, the shortest first.
select uuid from checkpoints where uuid >= $1 and uuid < $1 || U&'\FFFF' and starts_with(uuid, $1) order by uuid limit 2;
