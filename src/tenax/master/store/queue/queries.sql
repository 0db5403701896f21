-- name: shown
-- Jobs as people see them, beside their place in the queue.
with waiting as materialized (
    select distinct on (o.job_id) o.job_id, q.reason
    from allocation_waits q
    join allocations a on a.allocation_id = q.allocation_id and a.state = 'PENDING'
    join tasks o on o.task_id = a.task_id
    where o.job_id = any($1::text[])
    order by o.job_id, a.requested_at, a.allocation_id)
select j.job_id, j.pool, j.priority, j.weight, j.submitted_at, j.owner_id, u.username,
       e.id as experiment_id, coalesce(d.name, l.description, '') as name, t.task_id, coalesce(t.kind, 'TRIAL') as kind,
       coalesce(p.workspace_id, l.workspace_id, 1) as workspace_id,
       coalesce(w.reason, (
           select {{trials.cannot_start}}
           from trials t
           where t.experiment_id = e.id and t.state = 'ACTIVE' and t.setbacks > 0 order by t.id limit 1)) as reason,
       pr.progress
from jobs j
join users u on u.id = j.owner_id
left join experiments e on e.job_id = j.job_id
left join experiment_documents d on d.experiment_id = e.id
left join experiment_progress pr on pr.experiment_id = e.id
left join projects p on p.id = e.project_id
left join lateral (
    select o.task_id, o.kind from tasks o where o.job_id = j.job_id and e.id is null order by o.created_at, o.task_id limit 1) t on true
left join launched_tasks l on l.task_id = t.task_id
left join waiting w on w.job_id = j.job_id
where j.job_id = any($1::text[]);

-- name: held
-- Jobs whose trials wait without a request for the next try, since the platform ended the last within a minute.
select e.job_id, j.pool, sum(coalesce((d.config -> 'resources' ->> 'slots_per_trial')::int, 1))::int as slots
from trials t
join experiments e on e.id = t.experiment_id and e.state = 'ACTIVE'
join experiment_documents d on d.experiment_id = e.id
join jobs j on j.job_id = e.job_id
where t.state = 'ACTIVE' and t.held_until > now()
group by e.job_id, j.pool
order by e.job_id;

-- name: hidden
-- Jobs of the cluster's own, which are in nobody's way: not shown.
select distinct job_id from tasks where kind = 'CHECKPOINT_GC' and ended_at is null;

-- name: find
select j.job_id, j.owner_id, j.pool, j.priority, j.ended_at is not null as ended, e.id as experiment_id,
       coalesce(p.workspace_id, l.workspace_id, 1) as workspace_id, t.kind, l.task_id
from jobs j
left join experiments e on e.job_id = j.job_id
left join projects p on p.id = e.project_id
left join lateral (
    select o.task_id, o.kind from tasks o where o.job_id = j.job_id and e.id is null order by o.created_at, o.task_id limit 1) t on true
left join launched_tasks l on l.task_id = t.task_id
where j.job_id = $1;

-- name: priority_of_experiment
select j.priority from experiments e join jobs j on j.job_id = e.job_id where e.id = $1;

-- name: running_spans
-- What holds slots in a pool: for how long, and of trials how far they are after how long a time in all runs.
select a.allocation_id, extract(epoch from now() - a.assigned_at)::float8 as held_s, m.progress,
       (select sum(extract(epoch from coalesce(p.ended_at, now()) - p.assigned_at))::float8
        from tasks o join allocations p on p.task_id = o.task_id
        where o.task_id = t.task_id or o.trial_id = t.trial_id) as spent_s
from allocations a
join tasks t on t.task_id = a.task_id
join jobs j on j.job_id = t.job_id
left join trial_telemetry m on m.trial_id = t.trial_id
where j.pool = $1 and a.state not in ('PENDING', 'TERMINATED') and a.assigned_at is not null;

-- name: job_spans
-- The median of the attempts of each open job that have ended.
select t.job_id, (percentile_cont(0.5) within group (order by extract(epoch from a.ended_at - a.assigned_at)))::float8 as seconds
from jobs j
join tasks t on t.job_id = j.job_id
join allocations a on a.task_id = t.task_id
where j.pool = $1 and j.ended_at is null and a.state = 'TERMINATED' and a.assigned_at is not null
group by t.job_id;

-- name: usual_span
-- The median of the thousand that ended last in a pool.
select (percentile_cont(0.5) within group (order by extract(epoch from l.ended_at - l.started_at)))::float8
from (select u.ended_at, u.started_at from usage u
      where u.pool = $1 and u.slots > 0 and u.ended_at > now() - interval '30 days'
      order by u.ended_at desc limit 1000) l;

-- name: trials_to_come
-- Those that the searches of a pool have not made yet.
select e.job_id, (greatest(y.expected_trials, y.trials) - y.trials)::int as trials
from jobs j
join experiments e on e.job_id = j.job_id
join experiment_tallies y on y.experiment_id = e.id
where j.pool = $1 and j.ended_at is null and y.expected_trials > y.trials;

-- name: lock_queue
-- One change of a pool's order at a time.
select pg_advisory_xact_lock(hashtextextended('queue ' || $1, 0));

-- name: order
select job_id, queue_position from jobs
where pool = $1 and priority = $2 and ended_at is null
order by queue_position, job_id;

-- name: set_positions
update jobs set queue_position = moved.position, version = version + 1
from (select unnest($1::text[]) as job_id, unnest($2::float8[])::numeric as position) moved
where jobs.job_id = moved.job_id and jobs.ended_at is null;

-- name: set_priority
update jobs set priority = $2, version = version + 1 where job_id = $1;

-- name: set_weight
update jobs set weight = $2, version = version + 1 where job_id = $1;

-- name: set_pool
update jobs set pool = $2, version = version + 1 where job_id = $1;

-- name: note_in_config
-- What is shown of the experiment's configuration, and what a fork of it begins with.
update experiment_documents
set config = jsonb_set(config, array['resources', $2::text], $3::jsonb, true)
where experiment_id = $1 and jsonb_typeof(config -> 'resources') = 'object';

-- name: hold_open
-- From now on nobody places a request of the job, nor has one that is being placed been missed.
select a.allocation_id
from tasks t join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED'
where t.job_id = $1
order by a.allocation_id for no key update of a;

-- name: placed_allocations
select a.allocation_id
from tasks t join allocations a on a.task_id = t.task_id and a.state not in ('PENDING', 'TERMINATED')
where t.job_id = $1
order by a.allocation_id;

-- name: sizes
-- What the open requests of a job ask for, and what an experiment's next ones will.
select coalesce(max(a.slots), 0)::int as slots, coalesce(bool_or(a.single_node), false) as single_node,
       coalesce(bool_and(a.preemptible), true) as preemptible,
       (array_agg(a.constraints order by a.slots desc) filter (where a.constraints is not null))[1] as constraints
from tasks t join allocations a on a.task_id = t.task_id and a.state <> 'TERMINATED'
where t.job_id = $1;

-- name: bound_workspaces
select workspace_id from pool_bindings where pool = $1 order by workspace_id;

-- name: all_bindings
select pool, array_agg(workspace_id order by workspace_id) as workspaces from pool_bindings group by pool;

-- name: lock_pool
-- One change of a pool's bindings at a time: what is decided on them holds until it is written.
select pg_advisory_xact_lock(hashtextextended('pool ' || $1, 0));

-- name: bind
insert into pool_bindings (pool, workspace_id) select $1, unnest($2::bigint[]) on conflict do nothing returning workspace_id;

-- name: unbind
delete from pool_bindings where pool = $1 and workspace_id = any($2::bigint[]);

-- name: unbind_others
delete from pool_bindings where pool = $1 and not workspace_id = any($2::bigint[]);

-- name: known_workspaces
select id, name from workspaces where id = any($1::bigint[]) or lower(name) = any($2::text[]);

-- name: workspace
select name from workspaces where id = $1;

-- name: machines
-- Per pool, its agents that are connected and what they have; and all slots, those of the others among them.
select a.pool, count(distinct a.agent_id) filter (where p.connected)::int as agents,
       count(s.slot_id) filter (
           where p.connected and (a.state = 'ENABLED' and s.enabled and s.fault = '' or u.container_id is not null))::int as slots,
       count(u.container_id) filter (where p.connected)::int as used,
       count(s.slot_id)::int as total,
       array_agg(distinct s.kind) filter (where p.connected and s.kind is not null) as kinds,
       array_agg(distinct s.name) filter (where p.connected and s.name <> '') as devices,
       coalesce(max(n.slots) filter (where p.connected), 0)::int as most_slots,
       coalesce(min(n.slots) filter (where p.connected), 0)::int as fewest_slots
from agents a
left join agent_presence p on p.agent_id = a.agent_id
left join agent_slots s on s.agent_id = a.agent_id and s.present
left join slots_in_use u on u.agent_id = s.agent_id and u.slot_id = s.slot_id
left join lateral (select count(*) as slots from agent_slots o where o.agent_id = a.agent_id and o.present) n on true
group by a.pool;

-- name: auxiliary
-- Per pool, containers without slots that are not gone.
select a.pool, count(*)::int as running
from containers c join agents a on a.agent_id = c.agent_id
where c.gone_at is null and cardinality(c.slots) = 0
group by a.pool;

-- name: begin
-- Of members that were just placed; the rows stay as they were then.
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
where c.container_id = any($1::text[]);

-- name: end_use
update usage set ended_at = greatest(clock_timestamp(), started_at)
where container_id = any($1::text[]) and ended_at is null;

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

-- name: trace
-- Attempts that held slots, or an auxiliary place, between $1 and $2 and have ended, of the pool $6 or (null) of all;
-- after ($3, $4), $5 of them. What is left of their jobs says what they asked for besides.
with page as (
    select distinct started_at, allocation_id from usage
    where started_at < $2::timestamptz and ended_at > $1::timestamptz and (started_at, allocation_id) > ($3::timestamptz, $4::text)
      and ($6::text is null or pool = $6)
    order by started_at, allocation_id
    limit $5)
select u.allocation_id, u.task_id, coalesce('experiment ' || u.experiment_id, u.task_id) as job, u.username,
       u.workspace_name, u.pool, sum(u.slots)::int as slots, min(u.requested_at) as requested_at, u.started_at,
       max(u.ended_at) as ended_at, j.priority, j.weight, j.max_slots, coalesce(a.single_node, false) as single_node,
       coalesce(a.preemptible, true) as preemptible, a.time_limit_s, a.constraints
from page
join usage u on u.started_at = page.started_at and u.allocation_id = page.allocation_id
left join tasks t on t.task_id = u.task_id
left join jobs j on j.job_id = t.job_id
left join allocations a on a.allocation_id = u.allocation_id
group by u.started_at, u.allocation_id, u.task_id, u.experiment_id, u.username, u.workspace_name, u.pool, j.job_id,
         a.allocation_id
having bool_and(u.ended_at is not null)
order by u.started_at, u.allocation_id;

-- name: by_period
-- The part of each span of a use from $1 to $2 in periods that begin at $3 and end at $4.
cross join lateral (select greatest(span.since, $1::timestamptz) as begins,
                           least(span.until, $2::timestamptz, now()) as ends) part
cross join lateral generate_series(width_bucket(part.begins, $3::timestamptz[]), width_bucket(part.ends, $3::timestamptz[]))
    as p (number)
cross join lateral (select extract(epoch from
    least(part.ends, ($4::timestamptz[])[p.number]) - greatest(part.begins, ($3::timestamptz[])[p.number])) as seconds) s
where u.slots > 0 and span.since < least($2::timestamptz, now()) and (u.ended_at is null or u.ended_at > $1::timestamptz)
  and s.seconds > 0

-- name: in_use
cross join lateral (select u.started_at as since, coalesce(u.ended_at, now()) as until) span

-- name: aggregated
-- Slot seconds from $1 to $2, in periods without gaps that begin at $3: in all, and by user, pool, agent and experiment.
-- Each use is looked at once, and finds the periods that it lies in.
with shares as (
    select p.number, u.username, u.pool, u.agent_id, u.experiment_id, u.slots * s.seconds as seconds
    from usage u
    {{in_use}}
    {{by_period}})
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
{{in_use}}
{{by_period}}
group by 1, 2;

-- name: aggregated_by
-- The same by what $5 names and in all (a key of null), and what was waited for it: from the request until the placement.
-- Labels and groups count each; groups and projects are those of now.
select ($3::timestamptz[])[p.number] as begins, k.key, span.waited, sum(u.slots * s.seconds) as seconds
from usage u
cross join lateral (values (false, u.started_at, coalesce(u.ended_at, now())),
                           (true, u.requested_at, u.started_at)) as span (waited, since, until)
cross join lateral unnest(array[null::text] || case $5::text
    when 'user' then array[u.username]
    when 'pool' then array[u.pool]
    when 'agent' then array[u.agent_id]
    when 'type' then array[u.kind]
    when 'size' then array[(select sum(m.slots)::text from usage m
                            where m.started_at = u.started_at and m.allocation_id = u.allocation_id)]
    when 'workspace' then array[u.workspace_name]
    when 'experiment' then array_remove(array[u.experiment_id::text], null)
    when 'label' then coalesce((select d.labels from experiment_documents d where d.experiment_id = u.experiment_id), u.labels)
    when 'project' then array[coalesce((select e.project_id::text from experiments e where e.id = u.experiment_id), '')]
    when 'group' then coalesce((
        select array_agg(g.name) from user_group_members m join user_groups g on g.id = m.group_id where m.user_id = u.user_id),
        array['']) end) as k (key)
{{by_period}}
group by 1, 2, 3;

-- name: waited
-- Per pool and day, the seconds that attempts waited on average before they were placed, of the last $1 days.
select pool, to_char(started_at, 'YYYY-MM-DD') as day,
       avg(extract(epoch from started_at - requested_at))::float8 as seconds
from usage
where rank = 0 and started_at > now() - make_interval(days => $1)
group by pool, day
order by pool, day;
