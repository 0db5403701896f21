-- name: begin
-- Of a member that was just placed; what is said of it here stays as it was then.
insert into usage (container_id, allocation_id, rank, task_id, kind, experiment_id, user_id, username, workspace_id,
                   workspace_name, labels, pool, agent_id, slots, requested_at, started_at)
select c.container_id, c.allocation_id, c.rank, t.task_id, t.kind, e.id, u.id, u.username, w.id, coalesce(w.name, ''),
       coalesce(d.labels, '{}'), j.pool, c.agent_id, cardinality(c.slots), a.requested_at, c.created_at
from containers c
join allocations a on a.allocation_id = c.allocation_id
join tasks t on t.task_id = a.task_id
join jobs j on j.job_id = t.job_id
join users u on u.id = j.owner_id
left join trials tr on tr.id = t.trial_id
left join experiments e on e.id = tr.experiment_id
left join experiment_documents d on d.experiment_id = e.id
left join projects p on p.id = e.project_id
left join launched_tasks l on l.task_id = t.task_id
left join workspaces w on w.id = coalesce(p.workspace_id, l.workspace_id)
where c.container_id = $1;

-- name: end_use
update usage set ended_at = greatest(clock_timestamp(), started_at) where container_id = $1 and ended_at is null;

-- name: raw
-- Attempts that held slots between $1 and $2, with the seconds that lie between; after ($3, $4), $5 of them.
-- Seconds of a gang whose members ended apart are those of its average slot: times slots they are what was used.
with page as (
    select distinct started_at, allocation_id from usage
    where started_at < least($2::timestamptz, now()) and (ended_at is null or ended_at > $1::timestamptz)
      and (started_at, allocation_id) > ($3::timestamptz, $4::text)
    order by started_at, allocation_id
    limit $5)
select u.allocation_id, u.kind, u.task_id, u.experiment_id, u.user_id, u.username, u.workspace_name, u.pool, u.started_at,
       coalesce((select d.labels from experiment_documents d where d.experiment_id = u.experiment_id), u.labels) as labels,
       string_agg(distinct u.agent_id, ' ' order by u.agent_id) as agents,
       sum(u.slots)::int as slots, min(u.requested_at) as requested_at,
       case when bool_or(u.ended_at is null) then null else max(u.ended_at) end as ended_at,
       (case when sum(u.slots) > 0 then sum(u.slots * s.seconds) / sum(u.slots) else max(s.seconds) end)::float8 as seconds
from page
join usage u on u.started_at = page.started_at and u.allocation_id = page.allocation_id
cross join lateral (select greatest(0, extract(epoch from
    least(coalesce(u.ended_at, now()), $2) - greatest(u.started_at, $1))) as seconds) s
group by u.started_at, u.allocation_id, u.kind, u.task_id, u.experiment_id, u.user_id, u.username, u.workspace_name, u.pool,
         u.labels
order by u.started_at, u.allocation_id;

-- name: aggregated
-- Slot seconds from $1 to $2, in periods without gaps that begin at $3: in all, and by user, pool, agent and experiment.
-- Each use is looked at once, and finds the periods that it lies in.
with shares as (
    select p.number, u.username, u.pool, u.agent_id, u.experiment_id, u.slots * s.seconds as seconds
    from usage u
    cross join lateral (select greatest(u.started_at, $1::timestamptz) as begins,
                               least(coalesce(u.ended_at, now()), $2::timestamptz, now()) as ends) part
    cross join lateral generate_series(width_bucket(part.begins, $3::timestamptz[]), width_bucket(part.ends, $3::timestamptz[]))
        as p (number)
    cross join lateral (select extract(epoch from
        least(part.ends, ($4::timestamptz[])[p.number]) - greatest(part.begins, ($3::timestamptz[])[p.number])) as seconds) s
    where u.slots > 0 and u.started_at < least($2::timestamptz, now()) and (u.ended_at is null or u.ended_at > $1::timestamptz)
      and s.seconds > 0)
select ($3::timestamptz[])[number] as begins,
       case when grouping(username) = 0 then 'username' when grouping(pool) = 0 then 'resource_pool'
            when grouping(agent_id) = 0 then 'agent' when grouping(experiment_id) = 0 then 'experiment' else 'total' end as by,
       coalesce(username, pool, agent_id, experiment_id::text, '') as key, sum(seconds) as seconds
from shares
group by grouping sets ((number), (number, username), (number, pool), (number, agent_id), (number, experiment_id))
having grouping(experiment_id) = 1 or experiment_id is not null;

-- name: aggregated_by_label
-- The same by label: what has several counts for each of them.
select ($3::timestamptz[])[p.number] as begins, x.label, sum(u.slots * s.seconds) as seconds
from usage u
left join experiment_documents d on d.experiment_id = u.experiment_id
cross join lateral unnest(coalesce(d.labels, u.labels)) as x (label)
cross join lateral (select greatest(u.started_at, $1::timestamptz) as begins,
                           least(coalesce(u.ended_at, now()), $2::timestamptz, now()) as ends) part
cross join lateral generate_series(width_bucket(part.begins, $3::timestamptz[]), width_bucket(part.ends, $3::timestamptz[]))
    as p (number)
cross join lateral (select extract(epoch from
    least(part.ends, ($4::timestamptz[])[p.number]) - greatest(part.begins, ($3::timestamptz[])[p.number])) as seconds) s
where u.slots > 0 and u.started_at < least($2::timestamptz, now()) and (u.ended_at is null or u.ended_at > $1::timestamptz)
  and s.seconds > 0
group by 1, 2;

-- name: waited
-- Per pool and day, the seconds that attempts waited on average before they were placed, of the last $1 days.
select pool, to_char(started_at, 'YYYY-MM-DD') as day,
       avg(extract(epoch from started_at - requested_at))::float8 as seconds
from usage
where rank = 0 and started_at > now() - make_interval(days => $1)
group by pool, day
order by pool, day;
