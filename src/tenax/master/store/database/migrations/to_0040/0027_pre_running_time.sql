-- How long an experiment ran: while at least one of its trials did. Waiting for slots, pulls and pauses are no running.
-- Kept beside its other numbers, so that a list of experiments need not read the history of all their containers.
alter table experiment_tallies
    -- Chiefs of its trials that run now, and since when at least one does.
    add column running integer not null default 0 check (running >= 0),
    add column running_since timestamptz,
    -- Seconds, without the stretch that goes on.
    add column ran_s double precision not null default 0 check (ran_s >= 0),
    add constraint running_since_when_running check ((running_since is not null) = (running > 0));

-- By rank 0: it is there from the beginning to the end of an attempt.
create function tenax_tally_running() returns trigger language plpgsql as $$
declare
    begins boolean := new.started_at is not null and (tg_op = 'INSERT' or old.started_at is null);
    ends boolean := new.ended_at is not null and new.started_at is not null
                    and (tg_op = 'INSERT' or old.ended_at is null);
begin
    update experiment_tallies y
    set running = y.running + begins::int - ends::int,
        running_since = case when y.running + begins::int - ends::int = 0 then null
                             else coalesce(y.running_since, new.started_at) end,
        ran_s = y.ran_s + case when y.running + begins::int - ends::int = 0
            then greatest(0, extract(epoch from new.ended_at - coalesce(y.running_since, new.started_at))) else 0 end
    from allocations a join tasks k on k.task_id = a.task_id join trials t on t.id = k.trial_id
    where a.allocation_id = new.allocation_id and y.experiment_id = t.experiment_id;
    return null;
end $$;
create constraint trigger containers_tally_begin after update of started_at on containers
    deferrable initially deferred for each row
    when (new.rank = 0 and old.started_at is null and new.started_at is not null and new.ended_at is null)
    execute function tenax_tally_running();
create constraint trigger containers_tally_end after update of ended_at on containers
    deferrable initially deferred for each row
    when (new.rank = 0 and new.started_at is not null and old.ended_at is null and new.ended_at is not null)
    execute function tenax_tally_running();

-- What was there before.
with spans as (
    select t.experiment_id, tstzrange(c.started_at, greatest(c.started_at, c.ended_at)) as span, c.ended_at is null as open,
           c.started_at
    from containers c
    join allocations a on a.allocation_id = c.allocation_id
    join tasks k on k.task_id = a.task_id
    join trials t on t.id = k.trial_id
    where c.rank = 0 and c.started_at is not null),
ran as (
    select m.experiment_id, sum(extract(epoch from upper(r) - lower(r))) as seconds
    from (select experiment_id, range_agg(span) as spans from spans where not open group by experiment_id) m
    cross join lateral unnest(m.spans) r group by m.experiment_id),
now_running as (
    select experiment_id, count(*)::int as running, min(started_at) as since from spans where open group by experiment_id)
update experiment_tallies y
set ran_s = coalesce(ran.seconds, 0), running = coalesce(n.running, 0), running_since = n.since
from experiments e
left join ran on ran.experiment_id = e.id
left join now_running n on n.experiment_id = e.id
where y.experiment_id = e.id and (ran.experiment_id is not null or n.experiment_id is not null);
