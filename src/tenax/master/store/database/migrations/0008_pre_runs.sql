-- Runs as a table of a project shows them: numbers in it, hyperparameters and metadata by key, archived or not; how long
-- their output is kept, and what policies found in it.

alter table trials
    add column archived boolean not null default false,
    -- Days after its end; -1: for ever; null: as its experiment says.
    add column if not exists log_retention_days smallint check (log_retention_days >= -1),
    -- The name that whoever made it, without a search of ours, knows it by.
    add column if not exists external_id text;
alter table experiments add column if not exists external_id text;
create unique index trials_external on trials (experiment_id, external_id) where external_id is not null;

-- Every leaf of a document: its path with dots; ``alias``, from the third level on, is the last parent and the name,
-- which is how Determined knew it.
create function tenax_leaves(doc jsonb) returns table (key text, alias text, value jsonb)
language sql immutable parallel safe as $$
    with recursive walk (key, name, alias, depth, value) as (
        select e.key, e.key, null::text, 1, e.value
        from jsonb_each(case when jsonb_typeof(doc) = 'object' then doc else '{}' end) e
        union all
        select w.key || '.' || e.key, e.key, case when w.depth >= 2 then w.name || '.' || e.key end, w.depth + 1, e.value
        from walk w, jsonb_each(case when jsonb_typeof(w.value) = 'object' then w.value else '{}' end) e
    )
    select w.key, w.alias, w.value from walk w where jsonb_typeof(w.value) <> 'object' or w.value = '{}'
$$;

-- JSON without the spaces that PostgreSQL puts in.
create function tenax_compact(value jsonb) returns text language plpgsql immutable parallel safe as $$
begin
    return case jsonb_typeof(value)
        when 'array' then (
            select '[' || coalesce(string_agg(tenax_compact(e.value), ',' order by e.ordinality), '') || ']'
            from jsonb_array_elements(value) with ordinality e)
        when 'object' then (
            select '{' || coalesce(string_agg(to_json(e.key)::text || ':' || tenax_compact(e.value), ','), '') || '}'
            from jsonb_each(value) e)
        else value::text end;
end
$$;

-- The number that a JSON value is, special ones as the strings that stand for them; null for what is none.
create function tenax_number(value jsonb) returns double precision language sql immutable parallel safe as $$
    select case
        when jsonb_typeof(value) = 'number' and abs(value::numeric) < 1e308 then value::double precision
        when value in ('"NaN"', '"Infinity"', '"-Infinity"') then (value #>> '{}')::double precision end
$$;

-- The moment that a text is; null for what is none.
create function tenax_time(value text) returns timestamptz language plpgsql stable parallel safe as $$
begin
    return value::timestamptz;
exception when data_exception then
    return null;
end
$$;

create table run_hparams (
    trial_id bigint not null references trials (id) on delete cascade,
    key text not null,
    alias text,
    -- One of the three; what is none of them is JSON in ``text_value``.
    number_value double precision,
    boolean_value boolean,
    text_value text,
    primary key (trial_id, key),
    check (num_nonnulls(number_value, boolean_value, text_value) = 1)
);

create function tenax_index_hparams() returns trigger language plpgsql as $$
begin
    delete from run_hparams where trial_id = new.id;
    insert into run_hparams (trial_id, key, alias, number_value, boolean_value, text_value)
    select new.id, l.key, l.alias, tenax_number(l.value),
           case when jsonb_typeof(l.value) = 'boolean' then l.value::boolean end,
           case when jsonb_typeof(l.value) = 'boolean' or tenax_number(l.value) is not null then null
                when jsonb_typeof(l.value) = 'string' then l.value #>> '{}' else tenax_compact(l.value) end
    from tenax_leaves(new.hparams) l
    -- The key of an index has room for so much.
    where length(l.key) <= 500
    on conflict do nothing;
    return null;
end
$$;
create trigger trials_hparams after insert or update of hparams on trials
    for each row execute function tenax_index_hparams();

-- The number of a run in its project: KEY-n. A number is never used again.
create table project_counters (
    project_id bigint primary key references projects (id) on delete cascade,
    last_run bigint not null
);
create table run_numbers (
    trial_id bigint primary key references trials (id) on delete cascade,
    project_id bigint not null references projects (id) on delete cascade,
    local_id bigint not null,
    unique (project_id, local_id)
);

create function tenax_number_run(trial bigint, project bigint) returns void language sql as $$
    with counted as (
        insert into project_counters as c (project_id, last_run) values (project, 1)
        on conflict (project_id) do update set last_run = c.last_run + 1
        returning last_run
    )
    insert into run_numbers (trial_id, project_id, local_id) select trial, project, last_run from counted
    on conflict (trial_id) do update set project_id = excluded.project_id, local_id = excluded.local_id
$$;

-- Numbers are given at the end of a transaction: whoever else makes runs in the project waits for that moment only.
create function tenax_run_made() returns trigger language plpgsql as $$
begin
    perform tenax_number_run(t.id, e.project_id)
    from trials t join experiments e on e.id = t.experiment_id where t.id = new.id;
    return null;
end
$$;
create constraint trigger trials_number after insert on trials
    deferrable initially deferred for each row execute function tenax_run_made();

create function tenax_runs_moved() returns trigger language plpgsql as $$
begin
    perform tenax_number_run(t.id, t.project_id)
    from (select t.id, e.project_id from trials t join experiments e on e.id = t.experiment_id
          where e.id = new.id order by t.id) t;
    return null;
end
$$;
create constraint trigger experiments_moved after update of project_id on experiments
    deferrable initially deferred for each row when (old.project_id is distinct from new.project_id) execute function tenax_runs_moved();

-- What was made before: an update that changes nothing fills the index.
update trials set hparams = hparams;
select tenax_number_run(t.id, t.project_id)
from (select t.id, e.project_id from trials t join experiments e on e.id = t.experiment_id order by t.id) t;

create table run_metadata (
    trial_id bigint primary key references trials (id) on delete cascade,
    metadata jsonb not null check (jsonb_typeof(metadata) = 'object'),
    modified_at timestamptz not null default now()
);
-- Every leaf of it; an element of a list is a row of its own, what has no value has a row without one.
create table run_metadata_index (
    id bigint generated by default as identity primary key,
    trial_id bigint not null references run_metadata (trial_id) on delete cascade,
    flat_key text not null,
    is_array_element boolean not null,
    integer_value bigint,
    float_value double precision,
    boolean_value boolean,
    string_value text,
    timestamp_value timestamptz,
    check (num_nonnulls(integer_value, float_value, boolean_value, string_value, timestamp_value) <= 1)
);
create index run_metadata_index_key on run_metadata_index (trial_id, flat_key);

-- Policies that matched a line of a trial's output, once each and agent.
create table log_matches (
    trial_id bigint not null references trials (id) on delete cascade,
    -- Its name; of one without a name its pattern.
    policy text not null,
    -- None: it only labels the run.
    action text not null check (action in ('LABEL', 'CANCEL_RETRIES', 'EXCLUDE_NODE')),
    -- Whose line it was; empty where that is not known.
    agent_id text not null default '',
    run_id integer not null,
    line text not null,
    matched_at timestamptz not null default clock_timestamp(),
    primary key (trial_id, policy, action, agent_id)
);

-- One metric of one group of a trial, by minimum, maximum, mean or last value; null for none.
create function tenax_metric(trial bigint, grp text, metric text, qualifier text) returns jsonb
language sql stable parallel safe as $$
    select nullif(case
        when qualifier = 'last' then m -> 1
        when m ->> 0 <> 'number' then null
        when qualifier = 'min' then m -> 4
        when qualifier = 'max' then m -> 5
        when qualifier = 'mean' and (m ->> 2)::bigint > 0 and jsonb_typeof(m -> 3) = 'number'
            then to_jsonb((m ->> 3)::double precision / (m ->> 2)::bigint)
        when qualifier = 'mean' then m -> 3 end, 'null')
    from metric_groups g, lateral (select convert_from(g.summary, 'UTF8')::jsonb -> metric as m) s
    where g.trial_id = trial and g.grp = tenax_metric.grp
$$;
