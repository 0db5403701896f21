-- What lists are read from: columns, numbers and counts beside the rows they come from, kept by triggers. A page of
-- 100,000 experiments or runs is read from an index, not counted anew.

-- What the trials of an experiment come to ----------------------------------------------------------------------------

-- One row per experiment, made with its documents. The triggers below keep it: whoever writes trials, checkpoints and
-- validations need not know of it. They run at the end of the transaction, when nothing else is waited for any more, so
-- that this row adds no order to that of the locks. A transaction that removes trials makes none.
create table experiment_tallies (
    experiment_id bigint primary key references experiments (id) on delete cascade,
    -- As its configuration says: which value of the searcher's metric is better, and how many trials there will be (null:
    -- not known without the search).
    smaller_is_better boolean not null default true,
    expected_trials integer,
    -- That of its job, for lists.
    pool text not null default '',
    trials integer not null default 0,
    trials_ended integer not null default 0,
    -- Those that hold files.
    checkpoints integer not null default 0,
    checkpoint_bytes bigint not null default 0,
    -- The best validation of all trials, as reported. What is not finite ranks worst; of equals the first trial's counts.
    best_trial_id bigint,
    best_metric double precision,
    -- What is not finite has no place in an order.
    best_order double precision generated always as (
        case when best_metric > '-Infinity' and best_metric < 'Infinity' then best_metric end) stored,
    check ((best_trial_id is null) = (best_metric is null)),
    check (trials_ended <= trials)
) with (fillfactor = 70);
create index experiment_tallies_pool on experiment_tallies (pool, experiment_id);
create index experiment_tallies_best on experiment_tallies (best_order, experiment_id);
create index experiment_tallies_best_last on experiment_tallies (best_order desc nulls last, experiment_id desc);

-- The place of a metric among others: compared in this order, the least is the best.
create function tenax_rank(metric double precision, smaller_is_better boolean) returns double precision[]
language sql immutable parallel safe as $$
    select array[(metric in ('NaN', 'Infinity', '-Infinity'))::int::double precision,
                 case when smaller_is_better then metric else - metric end]
$$;

-- Counts anew: these experiments, or all.
create function tenax_tally(ids bigint[]) returns void language plpgsql as $$
declare
    chosen bigint[];
begin
    -- Locked first: what others committed meanwhile is seen by the next statement.
    select array_agg(l.experiment_id) into chosen
    from (select y.experiment_id from experiment_tallies y
          where y.experiment_id = any(coalesce(ids, (select array_agg(o.experiment_id) from experiment_tallies o)))
          order by y.experiment_id for update) l;
    if chosen is null then
        -- They went with their experiment.
        return;
    end if;
    update experiment_tallies y
    set trials = c.trials, trials_ended = c.ended, checkpoints = c.checkpoints, checkpoint_bytes = c.bytes,
        best_trial_id = c.best_trial_id, best_metric = c.best_metric
    from (
        select o.experiment_id, count(t.id)::int as trials, count(t.id) filter (where t.state <> 'ACTIVE')::int as ended,
               coalesce(sum(k.checkpoints), 0)::int as checkpoints, coalesce(sum(k.bytes), 0)::bigint as bytes,
               (array_agg(t.id order by tenax_rank(m.best_metric, o.smaller_is_better), t.id)
                   filter (where m.best_metric is not null))[1] as best_trial_id,
               (array_agg(m.best_metric order by tenax_rank(m.best_metric, o.smaller_is_better), t.id)
                   filter (where m.best_metric is not null))[1] as best_metric
        from experiment_tallies o
        left join trials t on t.experiment_id = o.experiment_id
        left join trial_telemetry m on m.trial_id = t.id
        left join lateral (
            select count(*) as checkpoints, sum(x.size_bytes) as bytes
            from checkpoints x
            where x.trial_id = t.id and x.state in ('COMPLETED', 'PARTIALLY_DELETED')) k on true
        where o.experiment_id = any(chosen)
        group by o.experiment_id) c
    where y.experiment_id = c.experiment_id;
end $$;

create function tenax_tally_begin() returns trigger language plpgsql as $$
declare
    searcher jsonb := new.config -> 'searcher';
begin
    insert into experiment_tallies (experiment_id, smaller_is_better, expected_trials, pool)
    select e.id, coalesce(searcher -> 'smaller_is_better' <> 'false', true),
           case when searcher ->> 'name' = 'single' then 1
                when jsonb_typeof(searcher -> 'max_trials') = 'number' then (searcher ->> 'max_trials')::numeric::int end,
           j.pool
    from experiments e join jobs j on j.job_id = e.job_id
    where e.id = new.experiment_id;
    return null;
end $$;
create trigger experiment_documents_tally after insert on experiment_documents
    for each row execute function tenax_tally_begin();

create function tenax_tally_pool() returns trigger language plpgsql as $$
begin
    update experiment_tallies y set pool = new.pool from experiments e
    where e.job_id = new.job_id and y.experiment_id = e.id;
    return null;
end $$;
create constraint trigger jobs_tally_pool after update of pool on jobs
    deferrable initially deferred for each row
    when (old.pool is distinct from new.pool) execute function tenax_tally_pool();

create function tenax_tally_trial() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        perform tenax_tally(array[old.experiment_id]);
    elsif tg_op = 'INSERT' then
        update experiment_tallies
        set trials = trials + 1, trials_ended = trials_ended + (new.state <> 'ACTIVE')::int
        where experiment_id = new.experiment_id;
    else
        update experiment_tallies
        set trials_ended = trials_ended + (new.state <> 'ACTIVE')::int - (old.state <> 'ACTIVE')::int
        where experiment_id = new.experiment_id;
    end if;
    return null;
end $$;
create constraint trigger trials_tally after insert or delete on trials
    deferrable initially deferred for each row execute function tenax_tally_trial();
create constraint trigger trials_tally_state after update of state on trials
    deferrable initially deferred for each row
    when ((old.state = 'ACTIVE') <> (new.state = 'ACTIVE')) execute function tenax_tally_trial();

create function tenax_tally_checkpoint() returns trigger language plpgsql as $$
declare
    had boolean := tg_op <> 'INSERT' and old.state in ('COMPLETED', 'PARTIALLY_DELETED');
    has boolean := tg_op <> 'DELETE' and new.state in ('COMPLETED', 'PARTIALLY_DELETED');
    more integer := has::int - had::int;
    bytes bigint := case when has then new.size_bytes else 0 end - case when had then old.size_bytes else 0 end;
begin
    if more <> 0 or bytes <> 0 then
        -- Those that go with their trial are counted with it.
        update experiment_tallies y
        set checkpoints = y.checkpoints + more, checkpoint_bytes = y.checkpoint_bytes + bytes
        from trials t
        where t.id = case when tg_op = 'DELETE' then old.trial_id else new.trial_id end
          and y.experiment_id = t.experiment_id;
    end if;
    return null;
end $$;
create constraint trigger checkpoints_tally after insert or delete or update of state, size_bytes on checkpoints
    deferrable initially deferred for each row execute function tenax_tally_checkpoint();

create function tenax_tally_best() returns trigger language plpgsql as $$
declare
    known experiment_tallies;
begin
    select y.* into known
    from experiment_tallies y join trials t on t.experiment_id = y.experiment_id
    where t.id = new.trial_id for no key update of y;
    if not found then
        return null;
    end if;
    if new.best_metric is not null and (known.best_metric is null
        or (tenax_rank(new.best_metric, known.smaller_is_better), new.trial_id)
           < (tenax_rank(known.best_metric, known.smaller_is_better), known.best_trial_id)) then
        update experiment_tallies set best_trial_id = new.trial_id, best_metric = new.best_metric
        where experiment_id = known.experiment_id;
    elsif known.best_trial_id = new.trial_id and new.best_metric is distinct from known.best_metric then
        -- The best is hidden by a newer run: another one is the best now.
        update experiment_tallies y set best_trial_id = b.trial_id, best_metric = b.best_metric
        from (select 1) one left join lateral (
            select m.trial_id, m.best_metric
            from trials t join trial_telemetry m on m.trial_id = t.id
            where t.experiment_id = known.experiment_id and m.best_metric is not null
            order by tenax_rank(m.best_metric, known.smaller_is_better), m.trial_id
            limit 1) b on true
        where y.experiment_id = known.experiment_id;
    end if;
    return null;
end $$;
create constraint trigger trial_telemetry_tally_first after insert on trial_telemetry
    deferrable initially deferred for each row
    when (new.best_metric is not null) execute function tenax_tally_best();
create constraint trigger trial_telemetry_tally after update of best_metric on trial_telemetry
    deferrable initially deferred for each row
    when (old.best_metric is distinct from new.best_metric) execute function tenax_tally_best();

-- How many experiments there are --------------------------------------------------------------------------------------

-- How many experiments there are of each project, owner, state and archiving, as changes to be summed: rows are only
-- added, so that transactions do not wait for each other, and folded into fewer from time to time (`experiment_counts`
-- in the store). Counting 100,000 rows of an index instead takes ten milliseconds for each page of a list.
create table experiment_counts (
    project_id bigint not null,
    owner_id bigint not null,
    state text not null,
    archived boolean not null,
    change bigint not null
);

create function tenax_count_experiment() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' then
        insert into experiment_counts values (old.project_id, old.owner_id, old.state, old.archived, -1);
    end if;
    if tg_op <> 'DELETE' then
        insert into experiment_counts values (new.project_id, new.owner_id, new.state, new.archived, 1);
    end if;
    return null;
end $$;

create trigger experiments_count after insert or delete on experiments
    for each row execute function tenax_count_experiment();
create trigger experiments_count_change after update of project_id, owner_id, state, archived on experiments
    for each row when ((old.project_id, old.owner_id, old.state, old.archived)
                       is distinct from (new.project_id, new.owner_id, new.state, new.archived))
    execute function tenax_count_experiment();

-- Hyperparameters by key ----------------------------------------------------------------------------------------------

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

-- A new trial has no rows to replace.
create function tenax_index_hparams() returns trigger language plpgsql as $$
begin
    if tg_op = 'UPDATE' then
        delete from run_hparams where trial_id = new.id;
    end if;
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

-- Numbers of runs -----------------------------------------------------------------------------------------------------

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

-- Metadata of runs ----------------------------------------------------------------------------------------------------

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

-- Metrics of runs -----------------------------------------------------------------------------------------------------

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
