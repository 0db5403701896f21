-- Trials that one statement makes, or a move takes along, are numbered and counted at once. One by one, each change had to find
-- its way over all the versions of a row that those before it in the transaction left: 20,000 trials took half a minute.
create function tenax_number_runs(trials bigint[], project bigint) returns void language sql as $$
    with counted as (
        insert into project_counters as c (project_id, last_run)
        select project, cardinality(trials) where cardinality(trials) > 0
        on conflict (project_id) do update set last_run = c.last_run + excluded.last_run
        returning last_run)
    insert into run_numbers (trial_id, project_id, local_id)
    select n.trial, project, c.last_run - cardinality(trials) + n.place
    from counted c, unnest(trials) with ordinality n (trial, place)
    on conflict (trial_id) do update set project_id = excluded.project_id, local_id = excluded.local_id
$$;
create or replace function tenax_runs_moved() returns trigger language plpgsql as $$
begin
    perform tenax_number_runs(coalesce(array_agg(t.id order by t.id), '{}'), new.project_id)
    from trials t where t.experiment_id = new.id;
    return null;
end $$;

-- What the statements of a transaction made; a row lives no longer than that. Numbers and counts change at its end, so that
-- whoever else makes trials waits for that moment only, and in the order of locks.
create unlogged table trials_made (
    id bigint generated always as identity primary key,
    experiment_id bigint not null,
    trials bigint[] not null,
    ended integer not null);

create function tenax_trials_made() returns trigger language plpgsql as $$
begin
    insert into trials_made (experiment_id, trials, ended)
    select experiment_id, array_agg(id order by id), count(*) filter (where state <> 'ACTIVE')
    from made group by experiment_id;
    return null;
end $$;
create function tenax_trials_counted() returns trigger language plpgsql as $$
begin
    delete from trials_made where id = new.id;
    -- Those that are still there.
    perform tenax_number_runs(array(select id from trials where id = any(new.trials) order by id), e.project_id)
    from experiments e where e.id = new.experiment_id;
    update experiment_tallies
    set trials = trials + cardinality(new.trials), trials_ended = trials_ended + new.ended
    where experiment_id = new.experiment_id;
    return null;
end $$;

drop trigger trials_number on trials;
drop trigger trials_tally on trials;
drop function tenax_run_made();
drop function tenax_number_run(bigint, bigint);
create trigger trials_made after insert on trials referencing new table as made
    for each statement execute function tenax_trials_made();
create constraint trigger trials_counted after insert on trials_made
    deferrable initially deferred for each row execute function tenax_trials_counted();
create constraint trigger trials_tally after delete on trials
    deferrable initially deferred for each row execute function tenax_tally_trial();

create or replace function tenax_tally_trial() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        perform tenax_tally(array[old.experiment_id]);
    else
        update experiment_tallies
        set trials_ended = trials_ended + (new.state <> 'ACTIVE')::int - (old.state <> 'ACTIVE')::int
        where experiment_id = new.experiment_id;
    end if;
    return null;
end $$;
