-- name: hyperparameters
-- Of runs: each key, and whether every value is a number.
select h.key as name, bool_and(h.number_value is not null) as number
from run_hparams h join trials t on t.id = h.trial_id join experiments e on e.id = t.experiment_id
where e.project_id = $1 and e.state <> 'DELETING'
group by h.key order by h.key;

-- name: configured
-- Of experiments: each hyperparameter, and whether it is a number wherever it is set.
select l.name, bool_and(l.number) as number
from experiments e
join experiment_documents d on d.experiment_id = e.id
cross join lateral (
    with recursive walk (name, node) as (
        select x.key, x.value from jsonb_each(case jsonb_typeof(d.config -> 'hyperparameters')
            when 'object' then d.config -> 'hyperparameters' else '{}' end) x
        union all
        select w.name || '.' || x.key, x.value from walk w, jsonb_each(case
            when jsonb_typeof(w.node) = 'object' and jsonb_typeof(w.node -> 'type') is distinct from 'string'
            then w.node else '{}' end) x
    )
    select w.name, case w.node ->> 'type' when 'const' then jsonb_typeof(w.node -> 'val') = 'number'
                        when 'categorical' then false else true end as number
    from walk w where jsonb_typeof(w.node -> 'type') = 'string') l
where e.project_id = $1 and e.state <> 'DELETING'
group by l.name order by l.name;

-- name: metadata
select x.flat_key as name,
       bool_and(num_nonnulls(x.integer_value, x.float_value) = 1) as number,
       bool_and(x.timestamp_value is not null) as moment,
       bool_or(x.is_array_element) as list
from run_metadata_index x join trials t on t.id = x.trial_id join experiments e on e.id = t.experiment_id
where e.project_id = $1 and e.state <> 'DELETING'
group by x.flat_key order by x.flat_key;

-- name: metrics
select g.grp, x.key as name, bool_and(x.value ->> 0 = 'number') as number
from metric_groups g
join trials t on t.id = g.trial_id
join experiments e on e.id = t.experiment_id
cross join lateral jsonb_each(convert_from(g.summary, 'UTF8')::jsonb) x
where e.project_id = $1 and e.state <> 'DELETING' and g.next_ord > 0
group by g.grp, x.key order by g.grp, x.key;

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
    where e.project_id = $1 and e.state <> 'DELETING') told
where value > '-Infinity' and value < 'Infinity'
group by name order by name;
