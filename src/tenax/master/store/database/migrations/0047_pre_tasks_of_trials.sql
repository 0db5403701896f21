-- A trial that goes on after its end has one more task, trials.task_id being the newest. Lines of a trial are numbered
-- through: all its tasks have their output in the log of the first, null: its own.
alter table tasks add column log_task_id text references tasks on delete cascade
    check (log_task_id is null or log_task_id <> task_id and trial_id is not null);
create index tasks_log on tasks (log_task_id) where log_task_id is not null;

-- The log goes on with the newest task, and ends with it.
create or replace function tenax_end_log_task() returns trigger language plpgsql as $$
begin
    update log_tasks set ended_at = new.ended_at where task_id = coalesce(new.log_task_id, new.task_id);
    return null;
end $$;

create or replace function tenax_keep_log_of_experiment() returns trigger language plpgsql as $$
begin
    update log_tasks l set keep_days = tenax_log_keep_days(k.trial_id)
    from trials t join tasks k on k.trial_id = t.id
    where t.experiment_id = new.experiment_id and l.task_id = k.task_id;
    return null;
end $$;

create or replace function tenax_keep_log_of_trial() returns trigger language plpgsql as $$
begin
    update log_tasks set keep_days = tenax_log_keep_days(new.id)
    where task_id in (select k.task_id from tasks k where k.trial_id = new.id);
    return null;
end $$;
