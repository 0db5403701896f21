-- name: set_archived
update trials set archived = $2 where id = $1 and archived <> $2;

-- name: held
-- Whether anything of it is still on a machine.
select exists (
    select 1
    from tasks k join allocations a on a.task_id = k.task_id join containers c on c.allocation_id = a.allocation_id
    where k.trial_id = $1 and c.gone_at is null);

-- name: tasks
select task_id from tasks where trial_id = $1;

-- name: uploads
-- Files that its tasks began to upload, and that are no checkpoints.
select u.uuid, s.config as storage
from tasks k
join checkpoint_uploads u on u.task_id = k.task_id
join storage_backends s on s.id = u.storage_id
where k.trial_id = $1 and u.collected_at is null and not exists (select 1 from checkpoints c where c.uuid = u.uuid)
order by u.uuid;

-- name: checkpoints
select c.uuid, s.config as storage, v.checkpoint_uuid is not null as registered
from checkpoints c
left join storage_backends s on s.id = c.storage_id
left join lateral (select checkpoint_uuid from model_versions where checkpoint_uuid = c.uuid limit 1) v on true
where c.trial_id = $1 and (c.state <> 'DELETED' or v.checkpoint_uuid is not null)
order by c.uuid;

-- name: needed_by
-- Another live trial that starts from one of its checkpoints.
select o.id from checkpoints c join trials o on o.warm_start_checkpoint = c.uuid and o.id <> $1 and o.state = 'ACTIVE'
where c.trial_id = $1 order by o.id limit 1;

-- name: delete
delete from trials where id = $1;

-- name: of_experiments
select id from trials where experiment_id = any($1::bigint[]) order by experiment_id, id;

-- name: sources
-- Left joins, though each has its row: what a filter and an order do not ask for is not joined at all.
from trials t
join experiments e on e.id = t.experiment_id
left join experiment_documents d on d.experiment_id = e.id
left join jobs j on j.job_id = e.job_id
left join projects p on p.id = e.project_id
left join workspaces w on w.id = p.workspace_id
left join users u on u.id = e.owner_id
left join experiment_progress pr on pr.experiment_id = e.id
left join run_numbers n on n.trial_id = t.id
left join trial_telemetry m on m.trial_id = t.id
left join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED'
where e.state <> 'DELETING'

-- name: owners
select t.id, t.experiment_id, e.project_id, e.owner_id, t.state as stored_state, t.archived,
       e.archived as experiment_archived, e.state as experiment_state, e.unmanaged,
       p.archived or w.archived as place_archived,
       coalesce(d.config -> 'searcher' ->> 'name', '') <> all($2::text[]) as multitrial
from trials t
join experiments e on e.id = t.experiment_id
join experiment_documents d on d.experiment_id = e.id
join projects p on p.id = e.project_id
join workspaces w on w.id = p.workspace_id
where t.id = any($1::bigint[]) and e.state <> 'DELETING'
order by e.id, t.id;

-- name: views
select {{trials.shown_state}} as state,
       t.id, t.experiment_id, t.archived or e.archived as archived, t.hparams, t.external_id, t.created_at, t.ended_at,
       extract(epoch from coalesce(t.ended_at, now()) - t.created_at)::float8 as age_s, {{trials.ran_s}} as ran_s,
       p.key || '-' || n.local_id as local_id,
       e.project_id, p.name as project_name, p.workspace_id, w.name as workspace_name, e.owner_id, u.username,
       p.archived or w.archived as parent_archived, e.parent_id, e.unmanaged, pr.progress as experiment_progress,
       e.external_id as external_experiment_id,
       d.name, d.description, d.labels, j.pool,
       coalesce(d.config -> 'searcher' ->> 'name', '') as searcher_type,
       coalesce(d.config -> 'searcher' ->> 'metric', '') as searcher_metric,
       d.config -> 'integrations' -> 'pachyderm' as pachyderm,
       m.best_metric, r.metadata,
       ck.checkpoints, ck.checkpoint_bytes,
       (select l.policy from log_matches l where l.trial_id = t.id order by l.matched_at, l.policy limit 1) as log_policy
from trials t
join experiments e on e.id = t.experiment_id
join experiment_documents d on d.experiment_id = e.id
join experiment_progress pr on pr.experiment_id = e.id
join jobs j on j.job_id = e.job_id
join projects p on p.id = e.project_id
join workspaces w on w.id = p.workspace_id
join users u on u.id = e.owner_id
left join run_numbers n on n.trial_id = t.id
left join trial_telemetry m on m.trial_id = t.id
left join run_metadata r on r.trial_id = t.id
left join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED'
cross join lateral (
    select count(*)::int as checkpoints, coalesce(sum(c.size_bytes), 0)::bigint as checkpoint_bytes
    from checkpoints c where c.trial_id = t.id and c.state in ('COMPLETED', 'PARTIALLY_DELETED')) ck
where t.id = any($1::bigint[]);

-- name: hyperparameters
-- Of runs: each key, and whether every value is a number.
select h.key as name, bool_and(h.number_value is not null) as number
from run_hparams h join trials t on t.id = h.trial_id join experiments e on e.id = t.experiment_id
where e.project_id = $1 and e.state <> 'DELETING'
group by h.key order by h.key limit $2;

-- name: configured
-- Of experiments: each hyperparameter, and whether it is a number wherever it is set.
select l.name, bool_and(l.number) as number
from experiments e
join experiment_documents d on d.experiment_id = e.id
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
    select w.name, case w.node ->> 'type' when 'const' then jsonb_typeof(w.node -> 'val') = 'number'
                        when 'categorical' then false else true end as number
    from walk w where jsonb_typeof(w.node -> 'type') = 'string') l
where e.project_id = $1 and e.state <> 'DELETING'
group by l.name order by l.name limit $2;

-- name: metadata
select x.flat_key as name,
       bool_and(num_nonnulls(x.integer_value, x.float_value) = 1) as number,
       bool_and(x.timestamp_value is not null) as moment,
       bool_or(x.is_array_element) as list
from run_metadata_index x join trials t on t.id = x.trial_id join experiments e on e.id = t.experiment_id
where e.project_id = $1 and e.state <> 'DELETING'
group by x.flat_key order by x.flat_key limit $2;

-- name: metrics
-- Where there are more than are offered, those of validations are: searches decide by them.
select grp, name, number
from (
    select g.grp, x.key as name, bool_and(x.value ->> 0 = 'number') as number
    from metric_groups g
    join trials t on t.id = g.trial_id
    join experiments e on e.id = t.experiment_id
    cross join lateral jsonb_each(convert_from(g.summary, 'UTF8')::jsonb) x
    where e.project_id = $1 and e.state <> 'DELETING' and g.next_ord > 0
    group by g.grp, x.key order by g.grp <> 'validation', g.grp, x.key limit $2
) offered
order by grp, name;

-- name: ranges
select name, min(value) as low, max(value) as high
from (
    select g.grp || '.' || x.key || '.' || v.qualifier as name, v.value
    from metric_groups g
    join trials t on t.id = g.trial_id
    join experiments e on e.id = t.experiment_id
    cross join lateral jsonb_each(convert_from(g.summary, 'UTF8')::jsonb) x
    cross join lateral (values
        ('last', tenax_number(x.value -> 1)), ('min', tenax_number(x.value -> 4)), ('max', tenax_number(x.value -> 5)),
        ('mean', tenax_number(x.value -> 3) / nullif((x.value ->> 2)::bigint, 0))) v (qualifier, value)
    where e.project_id = $1 and e.state <> 'DELETING' and g.next_ord > 0 and x.value ->> 0 = 'number'
    union all
    select 'searcherMetricsVal', m.best_metric
    from trial_telemetry m join trials t on t.id = m.trial_id join experiments e on e.id = t.experiment_id
    where e.project_id = $1 and e.state <> 'DELETING') ranged
where value > '-Infinity' and value < 'Infinity'
group by name order by name limit $2;

-- name: get
select metadata from run_metadata where trial_id = $1;

-- name: replace
insert into run_metadata (trial_id, metadata) values ($1, $2)
on conflict (trial_id) do update set metadata = excluded.metadata, modified_at = now();

-- name: drop_index
delete from run_metadata_index where trial_id = $1;

-- name: values_of
-- In order, each once, of a project's runs that are shown.
select distinct x.string_value
from run_metadata_index x
join trials t on t.id = x.trial_id
join experiments e on e.id = t.experiment_id
where e.project_id = $1 and e.state <> 'DELETING' and x.flat_key = $2 and x.string_value is not null
order by x.string_value
limit $3;
