-- The searcher's metric of each validation, under every method. The inbox of a search has only what the search decides
-- on: lists, the collection of checkpoints and the history of an experiment read this table.
create table validations (
    trial_id bigint not null references trials (id) on delete cascade,
    step bigint not null,
    -- As reported: NaN and infinities, too.
    metric double precision not null,
    reported_at timestamptz not null default now(),
    -- The first report of a step counts, also where a later run reports it again.
    primary key (trial_id, step)
);

insert into validations (trial_id, step, metric, reported_at)
select trial_id, at_key, (fact ->> 'metric')::float8, created_at from search_inbox where kind = 'validation';
