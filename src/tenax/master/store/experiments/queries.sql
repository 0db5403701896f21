-- name: get
select id, state, version, job_id, owner_id, unmanaged from experiments where id = $1;

-- name: lock
-- Keys never change, so rows that refer to it (facts, metrics) may be inserted meanwhile. A full lock would be waited for
-- by their transactions, which hold such a share of a trial that is locked next.
select id, state, version, job_id, owner_id, unmanaged from experiments
where id = any($1::bigint[]) order by id for no key update;

-- name: set_state
update experiments
set state = $3, reason = coalesce($4, reason), version = version + 1,
    started_at = case when $3 = 'ACTIVE' then coalesce(started_at, now()) else started_at end,
    ended_at = case when $3 in ('COMPLETED', 'CANCELED', 'ERROR') then coalesce(ended_at, now())
                    when $3 in ('DELETING', 'DELETE_FAILED') then ended_at end
where id = $1 and version = $2
returning version;

-- name: end_job
update jobs set ended_at = now(), version = version + 1 where job_id = $1 and ended_at is null;

-- name: live_ids
select id from experiments where ended_at is null and not unmanaged order by id;

-- name: plan
-- What the search and the placement of an experiment need of its documents.
select d.experiment_id, d.config, d.seed, d.context_hash, d.max_restarts_given, j.pool, j.priority, p.workspace_id
from experiment_documents d
join experiments e on e.id = d.experiment_id
join projects p on p.id = e.project_id
join jobs j on j.job_id = e.job_id
where d.experiment_id = any($1::bigint[]);

-- name: end_unmanaged_trials
update trials set state = 'CANCELED', reason = $2, ended_at = now(), version = version + 1
where experiment_id = $1 and state = 'ACTIVE';

-- name: end_unmanaged_tasks
update tasks set ended_at = now()
where ended_at is null and trial_id in (select id from trials where experiment_id = $1 and state = 'CANCELED')
returning task_id;

-- name: shown_state
-- What an experiment `e` is shown as: its own state, or while that is ACTIVE what the most advanced of its attempts does.
case when e.state <> 'ACTIVE' then e.state when e.unmanaged then 'RUNNING' else (
    select case max(case a.state when 'PENDING' then 1 when 'PULLING' then 2 when 'ASSIGNED' then 3 when 'STARTING' then 3 else 4 end)
           when 4 then 'RUNNING' when 3 then 'STARTING' when 2 then 'PULLING' else 'QUEUED' end
    from trials t join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED'
    where t.experiment_id = e.id and t.state = 'ACTIVE') end

-- name: first_failure
-- Of an experiment `e` that has failed: why the first of its trials did.
case when e.state = 'ERROR' then (
    select t.reason from trials t where t.experiment_id = e.id and t.state = 'ERROR' order by t.id limit 1) end

-- name: wait_reason
-- Why an experiment `e` waits: the reason of what it asked for first, or that a trial cannot start.
case when e.state = 'ACTIVE' then coalesce((
    select q.reason
    from trials t
    join allocations a on a.task_id = t.task_id and a.state = 'PENDING'
    join allocation_waits q on q.allocation_id = a.allocation_id
    where t.experiment_id = e.id and t.state = 'ACTIVE' and q.reason is not null
    order by a.requested_at, a.allocation_id limit 1), (
    select {{trials.cannot_start}}
    from trials t
    where t.experiment_id = e.id and t.state = 'ACTIVE' and t.setbacks > 0 order by t.id limit 1)) end

-- name: notes_digest
-- Another one for other notes: what the live stream says in their place, of documents `d`.
left(encode(sha256(convert_to(d.notes, 'UTF8')), 'hex'), 16)

-- name: views
-- In two parts, each planned for itself: one join of all these tables takes longer to plan than to make.
with page as materialized (
    select e.id, e.job_id, e.owner_id, e.project_id, e.parent_id, e.state, e.reason, e.archived, e.unmanaged, e.external_id,
           e.created_at, e.started_at, e.ended_at, d.name, d.description, d.notes, {{notes_digest}} as notes_digest, d.labels, d.original_config,
           d.config::text as config_text, d.context_hash,
           pr.progress, y.trials, y.checkpoints, y.checkpoint_bytes, y.best_trial_id, y.best_metric, j.pool,
           case when e.unmanaged then least(
                    extract(epoch from coalesce(e.ended_at, now()) - e.created_at),
                    (select sum({{trials.ran_s}}) from trials t where t.experiment_id = e.id))
                else y.ran_s + coalesce(extract(epoch from now() - y.running_since), 0) end::float8 as ran_s
    from experiments e
    join experiment_documents d on d.experiment_id = e.id
    join experiment_tallies y on y.experiment_id = e.id
    join experiment_progress pr on pr.experiment_id = e.id
    join jobs j on j.job_id = e.job_id
    where e.id = any($1::bigint[]))
select e.id, e.job_id, e.owner_id, u.username, u.display_name, e.project_id, p.name as project_name,
       coalesce(p.owner_id, 0) as project_owner_id, p.workspace_id, w.name as workspace_name,
       e.parent_id, p.archived or w.archived as parent_archived,
       e.state, e.reason, e.archived, e.unmanaged, e.external_id, e.created_at, e.started_at, e.ended_at,
       extract(epoch from coalesce(e.ended_at, now()) - e.created_at)::float8 as age_s,
       e.name, e.description, e.notes, e.notes_digest, e.labels, e.original_config, e.config_text, e.pool,
       coalesce((select x.size_bytes from contexts x where x.hash = e.context_hash), 0) as code_bytes,
       e.progress, e.trials, e.checkpoints, e.checkpoint_bytes, e.best_trial_id, e.best_metric, e.ran_s,
       {{first_failure}} as first_failure, {{shown_state}} as shown_state, {{wait_reason}} as wait_reason,
       case when e.unmanaged then (select t.external_id from trials t where t.id = e.best_trial_id) end as external_trial_id
from page e
join users u on u.id = e.owner_id
join projects p on p.id = e.project_id
join workspaces w on w.id = p.workspace_id;

-- name: trial_ids
select id from trials where experiment_id = $1 order by id;

-- name: job_standing
-- Jobs of the pool that wait and come earlier, and whether this one holds any slots.
with mine as (
    select j.* from jobs j join experiments e on e.job_id = j.job_id where e.id = $1)
select (select count(*)::int
        from jobs o join experiments e on e.job_id = o.job_id
        where o.pool = mine.pool and o.ended_at is null and e.state = 'ACTIVE'
          and (o.priority, o.queue_position, o.job_id) < (mine.priority, mine.queue_position, mine.job_id)
          and exists (select 1 from trials t join allocations a on a.task_id = t.task_id and a.state = 'PENDING'
                      where t.experiment_id = e.id and t.state = 'ACTIVE')) as ahead,
       exists (select 1 from experiments e join trials t on t.experiment_id = e.id and t.state = 'ACTIVE'
               join allocations a on a.task_id = t.task_id and a.state not in ('PENDING', 'TERMINATED')
               where e.job_id = mine.job_id) as placed,
       mine.pool
from mine;

-- name: owner
select owner_id from experiments where id = $1;

-- name: journal
select seq, at, entry from search_journal where experiment_id = $1 order by seq limit $2 offset $3;

-- name: more_than
select exists (select 1 from experiment_counts offset $1);

-- name: add_up
with taken as (
    delete from experiment_counts returning *)
insert into experiment_counts (project_id, owner_id, state, archived, change)
select project_id, owner_id, state, archived, sum(change) from taken
group by project_id, owner_id, state, archived
having sum(change) <> 0;

-- name: edit
-- What is typed again later stands in the shown configuration, too; the original one stays as it was typed.
update experiment_documents
set name = coalesce($2, name), description = coalesce($3, description), notes = coalesce($4, notes),
    labels = coalesce($5, labels),
    config = config || jsonb_strip_nulls(jsonb_build_object('name', $2::text, 'description', $3::text, 'labels', to_jsonb($5::text[])))
where experiment_id = $1
returning experiment_id;

-- name: add_label
update experiment_documents
set labels = labels || $2::text, config = jsonb_set(config, '{labels}', to_jsonb(labels || $2::text))
where experiment_id = $1 and not $2 = any(labels);

-- name: remove_label
update experiment_documents
set labels = array_remove(labels, $2), config = jsonb_set(config, '{labels}', to_jsonb(array_remove(labels, $2)))
where experiment_id = $1 and $2 = any(labels);

-- name: labels
select labels from experiment_documents where experiment_id = $1;

-- name: popular_labels
-- Those that most experiments have come first.
select l.label
from experiments e
join experiment_documents d on d.experiment_id = e.id
cross join lateral unnest(d.labels) l (label)
where ($1::bigint is null or e.project_id = $1)
group by l.label
order by count(*) desc, l.label;

-- name: set_archived
update experiments set archived = $2, version = version + 1
where id = $1 and state in ('COMPLETED', 'CANCELED', 'ERROR', 'DELETE_FAILED')
returning id;

-- name: place
select e.archived, e.project_id, p.archived or w.archived as project_archived, p.name as project_name
from experiments e
join projects p on p.id = e.project_id
join workspaces w on w.id = p.workspace_id
where e.id = $1;

-- name: move
update experiments set project_id = $2, version = version + 1 where id = $1 and project_id <> $2;

-- name: set_max_slots
update jobs set max_slots = $2, version = version + 1 where job_id = $1;

-- name: set_time_limit
update jobs set time_limit_s = $2, version = version + 1 where job_id = $1;

-- name: note_in_config
update experiment_documents
set config = jsonb_set(config, array['resources', $2::text], coalesce($3::jsonb, 'null'), true)
where experiment_id = $1 and jsonb_typeof(config -> 'resources') = 'object';

-- name: searcher_metric
select d.config -> 'searcher' ->> 'metric' as metric, y.smaller_is_better,
       exists (select 1 from trials t join trial_telemetry m on m.trial_id = t.id
               where t.experiment_id = d.experiment_id and m.best_metric is not null) as has_values
from experiment_documents d join experiment_tallies y on y.experiment_id = d.experiment_id
where d.experiment_id = $1;

-- name: set_searcher_metric
with document as (
    update experiment_documents
    set config = jsonb_set(config, '{searcher}', (config -> 'searcher')
                           || jsonb_build_object('metric', $2::text, 'smaller_is_better', $3::boolean))
    where experiment_id = $1)
update experiment_tallies set smaller_is_better = $3 where experiment_id = $1;

-- name: set_log_retention
update experiment_documents set log_retention_days = $2 where experiment_id = $1;

-- name: inherit_log_retention
-- What was said of single trials before is over.
update trials set log_retention_days = null where experiment_id = $1 and log_retention_days is not null;

-- name: create_job
insert into jobs (job_id, pool, priority, weight, max_slots, queue_position, owner_id, time_limit_s)
values ($1, $2, $3, $4, $5, floor(extract(epoch from clock_timestamp()) * 1000000), $6, $7);

-- name: create_experiment
insert into experiments (job_id, owner_id, project_id, parent_id) values ($1, $2, $3, $4) returning id;

-- name: create_documents
insert into experiment_documents (experiment_id, name, description, labels, original_config, config, seed, context_hash, notices,
                                  max_restarts_given)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: expect_trials
-- The configuration alone does not say how many points a grid has.
update experiment_tallies set expected_trials = $2 where experiment_id = $1 and expected_trials is distinct from $2;

-- name: trials
select id, request_id, state, hparams from trials where experiment_id = $1 order by id;

-- name: last_entry
select coalesce(max(seq), 0) from search_journal where experiment_id = $1;

-- name: unseen
-- Facts of these trials that the search has not seen, oldest first.
select id, fact from search_inbox where experiment_id = $1 and trial_id = any($2::bigint[]) and seq is null order by id;

-- name: forget_exits
-- The same attempt may end once more: what was told of it stays under the number of its journal entry.
update search_inbox set at_key = - seq
where experiment_id = $1 and trial_id = any($2::bigint[]) and kind = 'exit' and at_key >= 0;

-- name: reopen
update trials t
set state = 'ACTIVE', wish = 'RUN', wish_reason = '', reason = n.reason, restarts = 0, setbacks = 0, held_until = null,
    invalid_hp = false, fatal = null, ended_at = null, hparams = n.hparams, version = t.version + 1
from unnest($1::bigint[], $2::jsonb[], $3::text[]) as n (id, hparams, reason)
where t.id = n.id;

-- name: forget_repeated_failures
delete from repeated_failures where experiment_id = $1;

-- name: next_tasks
-- One more task of each trial, named after the first with how many there were; its output goes where theirs is.
with made as (
    insert into tasks (task_id, kind, job_id, trial_id, log_task_id)
    select f.log_task_id || '-' || f.tasks, k.kind, k.job_id, t.id, f.log_task_id
    from trials t
    join tasks k on k.task_id = t.task_id
    cross join lateral (
        select coalesce(k.log_task_id, k.task_id) as log_task_id,
               (select count(*) from tasks o where o.trial_id = t.id) as tasks) f
    where t.id = any($1::bigint[])
    returning task_id, trial_id, log_task_id)
update trials t set task_id = m.task_id from made m where t.id = m.trial_id
returning m.log_task_id;

-- name: no_progress
update trial_telemetry set progress = null, runner_state = '' where trial_id = any($1::bigint[]);

-- name: revive_job
-- Its place in the queue stays.
update jobs
set ended_at = null, pool = $2, priority = $3, weight = $4, max_slots = $5, time_limit_s = $6, version = version + 1
where job_id = $1;

-- name: set_documents
update experiment_documents
set config = $2, name = $3, description = $4, labels = $5,
    max_restarts_given = max_restarts_given or config -> 'max_restarts' is distinct from $2::jsonb -> 'max_restarts'
where experiment_id = $1;

-- name: deletion_requested
select id from experiments where state = 'DELETING' order by id;

-- name: deletion_trials
select t.id, array(select k.task_id from tasks k where k.trial_id = t.id) as task_ids
from trials t where t.experiment_id = $1 order by t.id;

-- name: held
-- Whether anything of it is still on a machine.
select exists (
    select 1
    from trials t
    join tasks k on k.trial_id = t.id
    join allocations a on a.task_id = k.task_id
    join containers c on c.allocation_id = a.allocation_id
    where t.experiment_id = $1 and c.gone_at is null);

-- name: needed_elsewhere
-- Its checkpoints that live trials of other experiments start from.
select c.uuid, o.id as trial_id, o.experiment_id
from trials t
join checkpoints c on c.trial_id = t.id and c.state in ('COMPLETED', 'PARTIALLY_DELETED')
join trials o on o.warm_start_checkpoint = c.uuid and o.experiment_id <> t.experiment_id and o.state = 'ACTIVE'
where t.experiment_id = $1
order by c.uuid, o.id
limit 1;

-- name: documents
select d.config, d.context_hash, e.job_id, e.owner_id, e.unmanaged, (select c.cluster_id::text from cluster c) as cluster_id,
       not e.unmanaged and exists (select 1 from trials t where t.experiment_id = e.id and t.run_id > 0) as ran
from experiments e join experiment_documents d on d.experiment_id = e.id
where e.id = $1;

-- name: checkpoints
select c.uuid, s.config as storage
from trials t
join checkpoints c on c.trial_id = t.id and c.state <> 'DELETED'
left join storage_backends s on s.id = c.storage_id
where t.experiment_id = $1
order by c.uuid;

-- name: lock_deleting
select id from experiments where id = $1 and state = 'DELETING' for update;

-- name: hold_checkpoints
-- Before their removals.
select c.uuid from trials t join checkpoints c on c.trial_id = t.id where t.experiment_id = $1 order by c.uuid for update of c;

-- name: hold_removals
-- In the order in which everyone holds them: what deletes rows because others go has none.
select r.uuid
from removals r
left join checkpoints c on c.uuid = r.checkpoint
left join checkpoint_uploads u on u.uuid = r.upload
join tasks k on k.task_id = coalesce(c.task_id, u.task_id)
join trials t on t.id = k.trial_id
where t.experiment_id = $1
order by r.uuid for update of r;

-- name: delete_experiment
delete from experiments where id = $1;

-- name: delete_job
delete from jobs where job_id = $1;

-- name: set_deletion_reason
update experiments set reason = $2, version = version + 1 where id = $1 and state = 'DELETING';

-- name: search_journal
select seq, entry from search_journal where experiment_id = $1 and seq > $2 order by seq;

-- name: append
-- And where the search stands after it: by itself, where its trials add nothing, that is its progress.
with standing as (
    update experiment_progress
    set settled = $4, share = $5, progress = case when $5 = 0 then $4 else progress end
    where experiment_id = $1 and $4::float8 is not null and (settled, share) is distinct from ($4, $5::float8))
insert into search_journal (experiment_id, seq, entry)
select $1, $2 + n.place - 1, n.entry from unnest($3::jsonb[]) with ordinality n (entry, place);

-- name: waiting
select i.id, i.trial_id, t.request_id, i.kind, i.at_key, i.fact
from search_inbox i join trials t on t.id = i.trial_id
where i.experiment_id = $1 and i.seq is null
order by i.id
limit $2;

-- name: search_move
update search_inbox i set seq = n.seq
from unnest($1::bigint[], $2::bigint[]) n (id, seq)
where i.id = n.id and i.seq is null;

-- name: forget_seen
-- Facts of ended experiments that their searches have seen: the journal has them, and knows one that comes again. Among $2
-- facts after number $1; the number of the last one, null where there is none.
with looked_at as (
    select i.id, i.seq is not null and e.ended_at is not null as over
    from search_inbox i join experiments e on e.id = i.experiment_id
    where i.id > $1 order by i.id limit $2),
forgotten as (delete from search_inbox i using looked_at l where i.id = l.id and l.over)
select max(id) from looked_at;

-- name: dirty
-- Experiments, of these or of all, whose search has something to do: never started, or with facts that wait.
select e.id from experiments e
where ($1::bigint[] is null or e.id = any($1))
  and e.ended_at is null and not e.unmanaged and e.state in ('ACTIVE', 'PAUSED')
  and (not exists (select 1 from search_journal j where j.experiment_id = e.id)
       or exists (select 1 from search_inbox i where i.experiment_id = e.id and i.seq is null))
order by e.id;

-- name: going_on
select id from experiments where ended_at is null and not unmanaged and state in ('ACTIVE', 'PAUSED');

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
select trial_id as id from tasks where task_id = $1 and trial_id is not null;

-- name: set_trial
update trials
set state = $2, reason = $3, version = version + 1,
    ended_at = case when $2 = 'ACTIVE' then null else coalesce($4, now()) end
where id = $1;

-- name: set_task
update tasks set ended_at = (select ended_at from trials where task_id = $1) where task_id = $1;

-- name: note_report
insert into unmanaged_trials (trial_id, lost) values ($1, $2)
on conflict (trial_id) do update
set heard_at = case when $2 then unmanaged_trials.heard_at else now() end, lost = $2, begun_at = null, begun_by = null;

-- name: begin_run
update trials set run_id = run_id + 1, version = version + 1 where id = $1 returning run_id;

-- name: set_hparams
update trials set hparams = $3, version = version + 1 where id = $1 and run_id = $2 and hparams is distinct from $3;

-- name: note_begin
-- For how long it ran is said again at its end.
update unmanaged_trials set begun_at = now(), begun_by = $2, ran_s = null where trial_id = $1;

-- name: date_trial
-- It began $2 and ended $3 seconds ago; never later than is known here.
update trials
set created_at = least(created_at, now() - make_interval(secs => $2)),
    ended_at = case when ended_at is not null then greatest(
        least(ended_at, now() - make_interval(secs => $3)), least(created_at, now() - make_interval(secs => $2))) end,
    version = version + 1
where id = $1
returning experiment_id;

-- name: date_experiment
update experiments e
set created_at = least(e.created_at, of.began), started_at = least(e.started_at, of.began),
    ended_at = case when e.ended_at is not null then of.ended end, version = version + 1
from (select min(created_at) as began, max(ended_at) as ended from trials where experiment_id = $1) of
where e.id = $1;

-- name: note_ran
update unmanaged_trials set ran_s = coalesce($2, ran_s) where trial_id = $1;

-- name: begun_before
-- Whether $2 began the newest run in the last $3 seconds, and nothing was reported of it.
select exists (
    select 1 from unmanaged_trials u
    where u.trial_id = $1 and u.begun_by = $2 and u.begun_at > now() - make_interval(secs => $3)
      and not exists (select 1 from metric_groups g where g.trial_id = $1 and g.reported_at >= u.begun_at)
      and not exists (select 1 from checkpoints c where c.trial_id = $1 and c.reported_at >= u.begun_at));

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

-- name: lock_progress
select p.experiment_id, p.progress, p.settled, p.share, e.state in ('ACTIVE', 'PAUSED') as running
from experiment_progress p join experiments e on e.id = p.experiment_id
where p.experiment_id = any($1::bigint[])
order by p.experiment_id
for no key update of p;

-- name: live_progress
-- What live trials report, and how far they have come of searcher.max_length: a number of steps, or {unit: number}, where
-- epochs and records are metrics of the latest validation.
select t.experiment_id, m.progress as reported, l.length,
       case when l.unit = 'batches' then (
                select max(g.newest_step) from metric_groups g where g.trial_id = t.id and g.newest_step >= 0
                    and g.grp not in ('gpu', 'cpu', 'memory', 'disk', 'network'))::float8
            when jsonb_typeof(m.latest_validation #> array['metrics', l.unit]) = 'number'
                then (m.latest_validation #>> array['metrics', l.unit])::float8 end as reached
from trials t
join experiment_documents d on d.experiment_id = t.experiment_id
cross join lateral (select d.config -> 'searcher' -> 'max_length' as given) s
left join lateral (
    select 'batches' as unit, (s.given #>> '{}')::float8 as length where jsonb_typeof(s.given) = 'number'
    union all
    select e.key, (e.value #>> '{}')::float8
    from jsonb_each(case when jsonb_typeof(s.given) = 'object' then s.given else '{}' end) e
    where jsonb_typeof(e.value) = 'number'
    limit 1) l on true
left join trial_telemetry m on m.trial_id = t.id
where t.experiment_id = any($1::bigint[]) and t.state = 'ACTIVE';

-- name: set_standing
update experiment_progress set progress = $2, settled = $3, share = $4 where experiment_id = $1;

-- name: set_progress
update experiment_progress p set progress = n.progress
from unnest($1::bigint[], $2::float8[]) n (experiment_id, progress)
where p.experiment_id = n.experiment_id;

-- name: forget_progress
update experiment_progress set progress = 0, settled = null, share = null where experiment_id = $1;

-- name: progress_due
-- Running experiments, of these or of all, whose trials tell, or of which nobody knows where they stand.
select e.id as experiment_id, e.unmanaged, p.settled is null as unknown,
       jsonb_typeof(d.config #> '{searcher,max_length}') in ('number', 'object') as counted
from experiments e
join experiment_progress p on p.experiment_id = e.id
join experiment_documents d on d.experiment_id = e.id
where e.ended_at is null and e.state in ('ACTIVE', 'PAUSED') and (p.settled is null or p.share > 0)
  and ($1::bigint[] is null or e.id = any($1::bigint[]))
order by e.id;

-- name: unmanaged_trials
-- Counted here: the tallies follow at the end of the transaction.
select e.state, greatest(y.expected_trials, n.trials) - n.lost as trials, n.ended
from experiments e
join experiment_tallies y on y.experiment_id = e.id
cross join lateral (
    select count(*)::int as trials, count(*) filter (where t.state = 'COMPLETED')::int as ended,
           count(*) filter (where t.state in ('CANCELED', 'ERROR'))::int as lost
    from trials t where t.experiment_id = e.id) n
where e.id = $1;

-- name: recent_names
-- What a filter that is typed may name: hyperparameters, metrics of best trials and labels of the newest experiments.
with recent as materialized (
    select e.id from experiments e
    where e.state <> 'DELETING' and ($1::bigint is null or e.project_id = $1)
    order by e.id desc limit $2)
(select 'hyperparameter' as kind, '' as grp, l.name
from recent r
join experiment_documents d on d.experiment_id = r.id
cross join lateral (
    with recursive walk (name, node) as (
        select x.key, x.value from jsonb_each(case jsonb_typeof(d.config -> 'hyperparameters')
            when 'object' then d.config -> 'hyperparameters' else '{}' end) x
        where length(x.key) <= 500
        union all
        -- As of runs: a longer name cannot be looked for, and thousands of them fill the memory.
        select w.name || '.' || x.key, x.value from walk w, jsonb_each(case
            when jsonb_typeof(w.node) = 'object' and jsonb_typeof(w.node -> 'type') is distinct from 'string'
            then w.node else '{}' end) x
        where length(w.name) + length(x.key) < 500
    )
    select w.name from walk w where jsonb_typeof(w.node -> 'type') = 'string') l
group by l.name order by count(*) desc, l.name limit $3)
union all
(select 'metric', g.grp, x.key
from recent r
join experiment_tallies y on y.experiment_id = r.id
join metric_groups g on g.trial_id = y.best_trial_id and g.next_ord > 0
cross join lateral jsonb_each(convert_from(g.summary, 'UTF8')::jsonb) x
group by g.grp, x.key order by count(*) desc, g.grp, x.key limit $3)
union all
(select 'label', '', l.label
from recent r
join experiment_documents d on d.experiment_id = r.id
cross join lateral unnest(d.labels) l (label)
group by l.label order by count(*) desc, l.label limit $3);

-- name: owners_like
select u.username from users u where u.active and u.username ilike $1 order by u.username limit $2;
