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

insert into experiment_counts
select project_id, owner_id, state, archived, count(*) from experiments group by project_id, owner_id, state, archived;

-- The queue asks what tasks a job has.
create index tasks_job on tasks (job_id);
