-- What is asked again and again does not read what has ended.

-- Of containers that have ended a machine has thousands, of others a few.
create index containers_live on containers (agent_id) where state <> 'TERMINATED';

-- Output that is kept no longer is found by when its task ended and how long it is kept ------------------------------

alter table log_tasks
    add column ended_at timestamptz,
    -- As its trial says, else its experiment, else its configuration; null: as the master says. -1: for ever.
    add column keep_days smallint;

create function tenax_log_keep_days(trial bigint) returns smallint language sql stable as $$
    select coalesce(t.log_retention_days, d.log_retention_days,
                    (d.config -> 'retention_policy' ->> 'log_retention_days')::smallint)
    from trials t left join experiment_documents d on d.experiment_id = t.experiment_id
    where t.id = trial
$$;

update log_tasks l set ended_at = t.ended_at, keep_days = tenax_log_keep_days(t.trial_id)
from tasks t where t.task_id = l.task_id;

create index log_tasks_ended on log_tasks (keep_days, ended_at) where ended_at is not null;

-- The task is held, so that its end comes before and is seen, or after and finds the new row.
create function tenax_fill_log_task() returns trigger language plpgsql as $$
begin
    select t.ended_at, tenax_log_keep_days(t.trial_id) into new.ended_at, new.keep_days
    from tasks t where t.task_id = new.task_id for share of t;
    return new;
end $$;
create trigger log_tasks_fill before insert on log_tasks for each row execute function tenax_fill_log_task();

create function tenax_end_log_task() returns trigger language plpgsql as $$
begin
    update log_tasks set ended_at = new.ended_at where task_id = new.task_id;
    return null;
end $$;
create trigger tasks_end_log after update of ended_at on tasks
    for each row when (old.ended_at is distinct from new.ended_at) execute function tenax_end_log_task();

create function tenax_keep_log_of_trial() returns trigger language plpgsql as $$
begin
    update log_tasks set keep_days = tenax_log_keep_days(new.id) where task_id = new.task_id;
    return null;
end $$;
create trigger trials_keep_log after update of log_retention_days on trials
    for each row when (old.log_retention_days is distinct from new.log_retention_days)
    execute function tenax_keep_log_of_trial();

create function tenax_keep_log_of_experiment() returns trigger language plpgsql as $$
begin
    update log_tasks l set keep_days = tenax_log_keep_days(t.id)
    from trials t where t.experiment_id = new.experiment_id and l.task_id = t.task_id;
    return null;
end $$;
create trigger experiment_documents_keep_log after update of log_retention_days, config on experiment_documents
    for each row when (
        old.log_retention_days is distinct from new.log_retention_days
        or (old.config -> 'retention_policy') is distinct from (new.config -> 'retention_policy'))
    execute function tenax_keep_log_of_experiment();

-- Metrics that are kept no longer are found by when their trial ended -----------------------------------------------

create index trials_ended on trials (ended_at, id) where ended_at is not null;

-- Those of trials that ended up to then are gone: the next clean-up goes on from there.
create table metric_retention (
    only_row boolean primary key default true check (only_row),
    ended_at timestamptz not null,
    trial_id bigint not null
);

-- Months of which nothing is left -----------------------------------------------------------------------------------

create function tenax_month_is_used(parents text[], heads text, month integer) returns boolean language plpgsql as $$
declare
    parent text;
    used boolean := false;
begin
    foreach parent in array parents loop
        if tenax_has_part(parent, format('%s_%s', parent, month)) then
            execute format('select exists (select 1 from %I)', format('%s_%s', parent, month)) into used;
            if used then
                return true;
            end if;
        end if;
    end loop;
    if heads is not null then
        execute format('select exists (select 1 from %I h where h.month = $1)', heads) into used using month;
    end if;
    return used;
end
$$;

-- Drops the partitions of a month before ``before`` where they are empty under all of ``parents``, and no row of
-- ``heads`` (if that is given) is of this month; returns how many months. Whoever reads or writes is not held up: a table that is in use at the moment stays for the next time.
create function tenax_drop_months(parents text[], before integer, heads text) returns integer language plpgsql as $$
declare
    candidate integer;
    parent text;
    dropped integer := 0;
begin
    if not pg_try_advisory_xact_lock(hashtextextended('tenax_add_month', 0)) then
        return 0;
    end if;
    perform set_config('lock_timeout', '100ms', true);
    for candidate in
        select substr(c.relname, length(parents[1]) + 2)::integer as month
        from pg_catalog.pg_inherits i join pg_catalog.pg_class c on c.oid = i.inhrelid
        where i.inhparent = parents[1]::regclass order by month
    loop
        exit when candidate >= before;
        begin
            continue when tenax_month_is_used(parents, heads, candidate);
            foreach parent in array parents loop
                execute format('lock table only %I in access exclusive mode', parent);
            end loop;
            -- Asked again: somebody may have written since.
            continue when tenax_month_is_used(parents, heads, candidate);
            foreach parent in array parents loop
                execute format('drop table if exists %I', format('%s_%s', parent, candidate));
            end loop;
            dropped := dropped + 1;
        exception when lock_not_available then
            null;
        end;
    end loop;
    return dropped;
end
$$;
