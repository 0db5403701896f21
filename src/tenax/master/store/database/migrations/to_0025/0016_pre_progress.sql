-- How far each experiment is, as the search that knows says: lists, filters and orders read it and compute nothing.
-- Telemetry, without a version: one row per experiment, made with it; whoever writes here takes this lock last.
create table experiment_progress (
    experiment_id bigint primary key references experiments (id) on delete cascade,
    progress double precision not null default 0 check (progress between 0 and 1),
    -- What is done, and what each live trial's own progress adds to it (`Standing` of `tenax.search.view`). Null: its search
    -- has to be looked at.
    settled double precision check (settled between 0 and 1),
    share double precision check (share between 0 and 1),
    check ((settled is null) = (share is null))
) with (fillfactor = 70);
create index experiment_progress_order on experiment_progress (progress, experiment_id);

create function tenax_progress_begin() returns trigger language plpgsql as $$
begin
    insert into experiment_progress (experiment_id) values (new.id);
    return null;
end $$;
create trigger experiments_progress after insert on experiments
    for each row execute function tenax_progress_begin();

-- What was there before: what has ended stays as it was shown, what goes on is looked at by the next master.
insert into experiment_progress (experiment_id, progress, settled, share)
select p.experiment_id, p.progress, case when p.over then p.progress end, case when p.over then 0 end
from (
    select e.id as experiment_id, e.ended_at is not null as over,
           case when e.state = 'COMPLETED' then 1
                else least(1, y.trials_ended / greatest(coalesce(y.expected_trials, 1), y.trials, 1)::float8) end as progress
    from experiments e join experiment_tallies y on y.experiment_id = e.id) p;
