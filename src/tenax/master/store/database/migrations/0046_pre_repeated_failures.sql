-- Where two runs of a trial failed alike before any step, while max_restarts is what it always is: further trials of the
-- experiment that fail there need no second run.
create table repeated_failures (
    experiment_id bigint not null references experiments (id) on delete cascade,
    place text not null,
    -- Which of its trials; for people.
    trial_id bigint not null,
    primary key (experiment_id, place));
