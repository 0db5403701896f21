-- name: plan
insert into machines (machine_id, pool, provider, region, endpoint, instance_type, slots, state, wanted_by, token_hash, story,
                      offer, price, price_source, priced_at, price_where)
values ($1, $2, $3, $4, $5, $6, $7, 'PLANNED', $8, $9, $10, $11, $12, $13, $14, $15);

-- name: hold_pool
select pg_advisory_xact_lock(hashtextextended('machines of pool ' || $1::text, 0));

-- name: any_unknown
select exists (select 1 from machines where pool = $1 and ended_at is null and machine_id <> all ($2::text[]));

-- name: adopt
-- Without a token: nobody can be asked.
insert into machines
    (machine_id, pool, provider, region, endpoint, instance_type, slots, state, token_hash, provider_id, zone, story,
     rented_at)
values ($1, $2, $3, $4, $5, $6, 0, case when $7::bytea is null then 'ENDING' else 'STARTING' end, $7, $8, $9, $10, now())
on conflict do nothing returning machine_id;

-- name: is_known
select exists (select 1 from machines where machine_id = $1 and (not $2 or ended_at is null));

-- name: is_adopted
select exists (select 1 from machines where machine_id = $1 and sent = 0 and provider_id <> '' and ended_at is null);

-- name: add_step
-- Never without end.
insert into machine_steps (machine_id, number, step, state, note)
select $1, count(*), $2, $3, $4 from machine_steps where machine_id = $1 having count(*) < $5;

-- name: steps
select step, state, note, said_at from machine_steps where machine_id = $1 order by number;

-- name: note
update machines set story = $3, version = version + 1 where machine_id = $1 and version = $2 returning version;

-- name: dismiss
-- Of one that leaves it is a new beginning: its work gets the time that it has to end.
update machines
set dismissal = $3, story = $4, changed_at = case when state = 'LEAVING' then now() else changed_at end, version = version + 1
where machine_id = $1 and version = $2 returning version;

-- name: leaving_work
-- What runs on machines that a person lets go, and was not asked to leave.
select distinct a.allocation_id, m.story
from machines m
join containers c on c.agent_id = m.machine_id and c.gone_at is null
join allocations a on a.allocation_id = c.allocation_id and a.state not in ('PENDING', 'TERMINATED') and a.preemption = 'NONE'
where m.state = 'LEAVING' and m.dismissal <> '';

-- name: columns
select machine_id, pool, provider, region, endpoint, instance_type, slots, state, wanted_by, provider_id, zone, story,
       planned_at, joined_at, changed_at, ended_at, sent, end_sent, version, dismissal, offer, price,
       price_source, priced_at, price_where,
       extract(epoch from coalesce(ended_at, now()) - coalesce(rented_at, joined_at))::float8 / 3600 as hours,
       extract(epoch from now() - changed_at)::float8 as age_s,
       extract(epoch from now() - planned_at)::float8 as since_planned_s,
       coalesce((select a.notice from agents a where a.agent_id = m.machine_id), '') as notice,
       (select a.notice_until from agents a where a.agent_id = m.machine_id) as notice_until
from machines m

-- name: any_open
select exists (select 1 from machines where ended_at is null);

-- name: standings
-- Of those that are not gone: how long their agents were not heard, and have had nothing to do.
select m.machine_id, extract(epoch from m.planned_at)::float8 as planned_at,
       case when p.connected then 0 else extract(epoch from now() - coalesce(p.last_seen_at, m.joined_at)) end::float8 as away_s,
       p.agent_id is not null as greeted, coalesce(p.connected, false) as connected,
       coalesce(p.connected, false) and (select count(*) from agent_slots s where s.agent_id = m.machine_id and s.present) < m.slots
           as lacks,
       p.agent_id is not null
           and not exists (select 1 from containers c where c.agent_id = m.machine_id and c.gone_at is null)
           -- Those that this database does not know, and that have not ended.
           and not exists (
               select 1 from jsonb_array_elements(p.foreign_containers) f
               where f->>'cluster_id' = (select cluster_id::text from cluster) and f->>'state' is distinct from 'exited')
           as idle,
       extract(epoch from now() - greatest(m.joined_at, (
           select max(c.gone_at) from containers c where c.agent_id = m.machine_id and c.agent_id like 'm-%')))::float8 as idle_s,
       coalesce(a.state = 'ENABLED', false) as takes_work,
       case when a.state = 'DRAINING' and a.reason = a.notice then a.notice else '' end as notice
from machines m left join agent_presence p on p.agent_id = m.machine_id left join agents a on a.agent_id = m.machine_id
where m.ended_at is null;

-- name: rests
select pool, offer, settings, cause, failures, story, since, extract(epoch from until)::float8 as until
from offer_rests;

-- name: rest_of
select cause, failures, since, until from offer_rests where pool = $1 and offer = $2 and settings = $3 for update;

-- name: rest
insert into offer_rests (pool, offer, settings, cause, failures, story, until)
values ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7::float8))
on conflict (pool, offer, settings) do update
set cause = excluded.cause, failures = excluded.failures, story = excluded.story, since = now(), until = excluded.until;

-- name: rested
delete from offer_rests
where pool = $1 and ((offer = any ($2::text[]) and cause = any ($3::text[])) or since < now() - interval '90 days');

-- name: returning
-- Attempts of rented machines that leave them for a notice, or are to once there is room elsewhere, and go on then.
select g.pool, a.allocation_id, bool_and(g.notice_plan = 'REPLACE' and a.preemption = 'NONE') as stays, min(g.notice) as notice
from machines m
join agents g on g.agent_id = m.machine_id and g.notice_plan in ('REPLACE', 'LEAVE') and g.state <> 'ENABLED'
join containers c on c.agent_id = g.agent_id and c.gone_at is null
join allocations a on a.allocation_id = c.allocation_id and a.state not in ('PENDING', 'TERMINATED')
join tasks t on t.task_id = a.task_id
left join trials tr on tr.id = t.trial_id
left join experiments e on e.id = tr.experiment_id
left join launched_tasks l on l.task_id = t.task_id
where m.ended_at is null
  and ((tr.state = 'ACTIVE' and tr.wish = 'RUN' and e.state = 'ACTIVE') or (l.state = 'ACTIVE' and l.pausable))
group by g.pool, a.allocation_id;

-- name: send
update machines set state = $3, sent = sent + 1, changed_at = now(), version = version + 1
where machine_id = $1 and version = $2 returning version;

-- name: end_sent
update machines set end_sent = end_sent + 1, changed_at = now(), version = version + 1
where machine_id = $1 and version = $2 returning version;

-- name: change
update machines
set state = $3, story = case when $4 = '' then story else $4 end, changed_at = now(), version = version + 1,
    provider_id = case when $5 = '' then provider_id else $5 end, zone = case when $6 = '' then zone else $6 end,
    token_hash = case when $3 in ('PLANNED', 'ASKED', 'STARTING') then token_hash end,
    rented_at = case when $3 = 'STARTING' then coalesce(rented_at, now()) else rented_at end,
    joined_at = case when $3 = 'JOINED' then now() when not $7 then joined_at end,
    ended_at = case when $3 in ('GONE', 'FAILED') then now() end,
    -- Whoever lets its agent take work again takes back that it is to end.
    dismissal = case when state = 'LEAVING' and $3 = 'JOINED' then '' else dismissal end
where machine_id = $1 and version = $2 returning version;

-- name: is_starting
select exists (select 1 from machines where token_hash = $1);

-- name: of_token
select machine_id, pool, state, version from machines where token_hash = $1 for update;

-- name: cost
-- Machines that were paid for between $1 and $2, of the pool $3 or (null) of all, each with what ran on it, a row each.
-- $4 says whose that is; by what needs no uses a machine is one row. Moments are whole microseconds.
select m.machine_id, m.pool, m.slots, m.price, paid.begins, paid.ends, u.name, u.slots as used, u.begins as since, u.ends as until
from machines m
cross join lateral (
    select extract(epoch from greatest(coalesce(m.rented_at, m.joined_at), $1)) * 1000000 as begins,
           extract(epoch from least(coalesce(m.ended_at, now()), $2, now())) * 1000000 as ends) span
cross join lateral (select span.begins::bigint as begins, span.ends::bigint as ends) paid
left join lateral (
    select o.slots, (extract(epoch from o.started_at) * 1000000)::bigint as begins,
           (extract(epoch from coalesce(o.ended_at, now())) * 1000000)::bigint as ends,
           case $4::text
               when 'user' then o.username
               when 'workspace' then o.workspace_name
               when 'experiment' then coalesce(o.experiment_id::text, '')
               when 'project' then coalesce((
                   select w.name || '/' || p.name
                   from experiments e join projects p on p.id = e.project_id join workspaces w on w.id = p.workspace_id
                   where e.id = o.experiment_id), '') end as name
    from usage o
    where o.agent_id = m.machine_id and o.agent_id like 'm-%' and o.started_at < $2 and coalesce(o.ended_at, now()) > $1
      and $4::text not in ('pool', 'day')) u on true
where (m.ended_at is null or m.ended_at > $1::timestamptz) and ($3::text is null or m.pool = $3) and paid.begins < paid.ends
  -- Of what was planned, refused or never made nothing was paid for.
  and coalesce(m.rented_at, m.joined_at) is not null
order by m.machine_id;

-- name: this_month
-- The month that is now (in UTC), and for how long machines were paid for in it; a month without any is one row.
with month as (
    select date_trunc('month', now() at time zone 'UTC') at time zone 'UTC' as begins,
           (date_trunc('month', now() at time zone 'UTC') + interval '1 month') at time zone 'UTC' as ends)
select month.begins, month.ends, m.pool, m.offer, m.price,
       sum(extract(epoch from coalesce(m.ended_at, now()) - greatest(coalesce(m.rented_at, m.joined_at), month.begins)) / 3600)::float8
           as hours
from month
left join machines m on (m.ended_at is null or m.ended_at > month.begins) and coalesce(m.rented_at, m.joined_at) is not null
group by month.begins, month.ends, m.pool, m.offer, m.price;

-- name: warn
insert into budget_warnings (pool, month, amount, stage) values ($1, $2, $3, $4) on conflict do nothing returning true;

-- name: forget_warnings
delete from budget_warnings where month < $1::date - 90;

-- name: silent_providers
select provider, region, endpoint, since, reason from silent_providers order by since, provider, region, endpoint;

-- name: provider_silent
insert into silent_providers (provider, region, endpoint, reason) values ($1, $2, $3, $4) on conflict do nothing;

-- name: provider_answers
delete from silent_providers where provider = $1 and region = $2 and endpoint = $3;

-- name: offer_facts
select pool, offer, price, price_source, priced_at, slots,
       extract(epoch from now() - priced_at)::float8 as price_age_s,
       extract(epoch from now() - asked_at)::float8 as age_s
from offer_facts;

-- name: note_facts
-- Whether anything is other than before.
with before as (select price, slots from offer_facts where pool = $1 and offer = $2),
stored as (
    insert into offer_facts (pool, offer, price, price_source, priced_at, slots)
    values ($1, $2, $3, $4, case when $3::float8 is not null then now() end, $5)
    on conflict (pool, offer) do update
    set price = coalesce(excluded.price, offer_facts.price),
        price_source = case when excluded.price is null then offer_facts.price_source else excluded.price_source end,
        priced_at = coalesce(excluded.priced_at, offer_facts.priced_at),
        slots = coalesce(excluded.slots, offer_facts.slots), asked_at = now()
    returning price, slots)
select stored.price is distinct from before.price or stored.slots is distinct from before.slots
from stored left join before on true;
