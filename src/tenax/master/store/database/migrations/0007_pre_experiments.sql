-- What a list of experiments is ordered by, and what the trials of each come to, beside the experiments: a page of
-- 100,000 is read from an index, not counted anew.

-- Orders of columns that the rows hold. Where one may be null it comes last both ways, which takes two indexes.
create index experiments_state on experiments (array_position(array[
    'ACTIVE', 'PAUSED', 'STOPPING_CANCELED', 'STOPPING_KILLED', 'STOPPING_COMPLETED', 'STOPPING_ERROR',
    'DELETING', 'CANCELED', 'COMPLETED', 'ERROR', 'DELETE_FAILED'], state), id);
create index experiments_created on experiments (created_at, id);
create index experiments_ended on experiments (ended_at, id);
create index experiments_ended_last on experiments (ended_at desc nulls last, id desc);
create index experiments_of_project on experiments (project_id, id);
create index experiments_parent on experiments (parent_id, id) where parent_id is not null;
drop index experiments_owner;
create index experiments_owner on experiments (owner_id, id);
-- What most lists ask for; counted without the rows themselves.
create index experiments_shown on experiments (archived, owner_id, project_id, id);

-- By the first letters, whatever their case, in the order of code points.
alter table experiment_documents
    add column name_key text collate "C" not null generated always as (lower(left(name, 200))) stored,
    add column description_key text collate "C" not null generated always as (lower(left(description, 200))) stored;
create index experiment_documents_name on experiment_documents (name_key, experiment_id);
create index experiment_documents_description on experiment_documents (description_key, experiment_id);
create index experiment_documents_labels on experiment_documents using gin (labels);
create index experiment_documents_context on experiment_documents (context_hash) where context_hash is not null;

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

-- What was there before.
insert into experiment_tallies (experiment_id, smaller_is_better, expected_trials, pool)
select d.experiment_id, coalesce(d.config -> 'searcher' -> 'smaller_is_better' <> 'false', true),
       case when d.config -> 'searcher' ->> 'name' = 'single' then 1
            when jsonb_typeof(d.config -> 'searcher' -> 'max_trials') = 'number'
                then (d.config -> 'searcher' ->> 'max_trials')::numeric::int end,
       j.pool
from experiment_documents d
join experiments e on e.id = d.experiment_id
join jobs j on j.job_id = e.job_id;
select tenax_tally(null);
