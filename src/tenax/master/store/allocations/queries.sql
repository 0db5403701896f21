-- name: request
-- The clock, not the transaction's time: what is asked for together is served in the order of asking. Agents that a log
-- policy has excluded for the trial are blocked.
insert into allocations
    (allocation_id, task_id, run_id, slots, preemptible, single_node, constraints, requested_at, blocked_agents)
select n.allocation_id, n.task_id, n.run_id, $4, $5, $6, $7, clock_timestamp(), array(
    select distinct m.agent_id
    from tasks k join log_matches m on m.trial_id = k.trial_id and m.action = 'EXCLUDE_NODE' and m.agent_id <> ''
    where k.task_id = n.task_id order by m.agent_id)
from unnest($1::text[], $2::text[], $3::integer[]) with ordinality as n (allocation_id, task_id, run_id, place)
order by n.place;

-- name: lock
select allocation_id, task_id, run_id, state, version, preemption, preemption_reason, over_time, ready_at is not null as ready,
       coalesce(ready_at < now() - interval '1 minute', false) as lasted
from allocations where allocation_id = any($1::text[]) order by allocation_id for no key update;

-- name: owners_of_containers
-- One that is gone is not known any more: an agent that still has something of it is told to remove that.
select c.container_id, c.allocation_id, a.task_id, t.trial_id, tr.experiment_id
from containers c
join allocations a on a.allocation_id = c.allocation_id
join tasks t on t.task_id = a.task_id
left join trials tr on tr.id = t.trial_id
where c.container_id = any($1::text[]) and c.gone_at is null and ($2::text is null or c.agent_id = $2);

-- name: owners
select a.allocation_id, a.task_id, t.trial_id, tr.experiment_id
from allocations a
join tasks t on t.task_id = a.task_id
left join trials tr on tr.id = t.trial_id
where a.allocation_id = any($1::text[]);

-- name: set_states
update allocations a
set state = n.state, exit_reason = n.reason, version = a.version + 1,
    ready_at = case when n.ready then coalesce(a.ready_at, now()) else a.ready_at end,
    ended_at = case when n.state = 'TERMINATED' then now() end
from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::boolean[]) as n (allocation_id, version, state, reason, ready)
where a.allocation_id = n.allocation_id and a.version = n.version
returning a.allocation_id;

-- name: hold
-- Those that have not ended, in the order in which everyone holds them, before an update, which takes its rows as they come.
select allocation_id from allocations where allocation_id = any($1::text[]) and state <> 'TERMINATED'
order by allocation_id for no key update;

-- name: withdraw
update allocations a set state = 'TERMINATED', exit_reason = w.reason, ended_at = now(), version = a.version + 1
from unnest($1::text[], $2::text[]) as w (allocation_id, reason)
where a.allocation_id = w.allocation_id and a.state = 'PENDING'
returning a.allocation_id;

-- name: ask_to_leave
-- Within the seconds that are given; where none are, within those that its configuration gives, or what is usual for an
-- attempt of a trial ($4) or of a launched task ($5), and at once before it is ready, for there is nothing to save then.
-- Asked again, the shorter time and the first reason hold.
with ours as (
    select a.allocation_id, w.reason, now() + make_interval(secs => coalesce(w.within_s,
               case when a.ready_at is null then 0
                    else coalesce((coalesce(d.config, t.spec -> 'config') ->> 'preemption_timeout')::float8,
                                  case when t.trial_id is null then $5::float8 else $4::float8 end) end)) as until
    from allocations a
    join unnest($1::text[], $2::text[], $3::float8[]) as w (allocation_id, reason, within_s) using (allocation_id)
    join tasks t on t.task_id = a.task_id
    left join trials tr on tr.id = t.trial_id
    left join experiment_documents d on d.experiment_id = tr.experiment_id
    where a.state not in ('PENDING', 'TERMINATED'))
update allocations a
set preemption = case a.preemption when 'NONE' then 'REQUESTED' else a.preemption end,
    preemption_reason = case a.preemption_reason when '' then ours.reason else a.preemption_reason end,
    preemption_deadline = ours.until, version = a.version + 1
from ours
where a.allocation_id = ours.allocation_id
  and (a.preemption = 'NONE' or a.preemption_deadline is null or a.preemption_deadline > ours.until)
returning a.allocation_id;

-- name: acknowledge
-- A task that leaves without having been asked has all the time it wants.
update allocations set preemption = 'ACKNOWLEDGED', version = version + 1
where allocation_id = $1 and preemption <> 'ACKNOWLEDGED' and state <> 'TERMINATED'
returning allocation_id;

-- name: set_ready
update allocations set ready_at = coalesce(ready_at, now()), waiting_since = null, version = version + 1
where allocation_id = $1 and (ready_at is null or waiting_since is not null) and state <> 'TERMINATED'
returning allocation_id;

-- name: set_waiting
update allocations set waiting_since = now(), version = version + 1
where allocation_id = $1 and waiting_since is null and state <> 'TERMINATED'
returning allocation_id;

-- name: set_proxy_address
update allocations set proxy_address = $2, version = version + 1
where allocation_id = $1 and proxy_address <> $2 and state <> 'TERMINATED'
returning allocation_id;

-- name: limited
-- Those that hold their slots for a limited time and have longer until they are ended: also such as leave for another
-- reason, or by themselves.
select a.allocation_id, {{time_limit}} as time_limit_s, extract(epoch from now() - a.assigned_at)::float8 as held_s
from allocations a
join tasks t on t.task_id = a.task_id
join jobs j on j.job_id = t.job_id
where a.state not in ('PENDING', 'TERMINATED') and not a.over_time
  and (a.preemption_deadline is null or a.preemption_deadline > a.assigned_at + make_interval(secs => {{time_limit}}))
  and {{time_limit}} is not null
order by a.allocation_id;

-- name: time_limit
-- Of an attempt `a` of a job `j`: a longer one than it was placed with is for the next, since others may count on it.
least(a.time_limit_s, j.time_limit_s)

-- name: are_over_time
-- Who leaves for another reason does not do so for its time.
update allocations set over_time = true
where allocation_id = any($1::text[]) and preemption <> 'REQUESTED' and state <> 'TERMINATED';

-- name: missed
-- Those whose time to save was over before anybody listened, which is for $1 seconds.
select a.allocation_id, a.time_limit_s, 0::float8 as held_s from allocations a
where a.state not in ('PENDING', 'TERMINATED') and a.over_time and a.time_limit_s is not null
  and a.preemption_deadline < now() - make_interval(secs => $1);

-- name: lift_deadline
update allocations set preemption_deadline = now() + make_interval(secs => $2), version = version + 1
where allocation_id = $1 and over_time and state <> 'TERMINATED';

-- name: overdue
select allocation_id from allocations
where state not in ('PENDING', 'TERMINATED') and preemption_deadline < now()
  and exists (select 1 from containers c where c.allocation_id = allocations.allocation_id
              and c.state <> 'TERMINATED' and c.want = 'RUN');

-- name: next_deadline
-- Seconds until the next deadline that has not passed; what is overdue is handled in any pass.
select extract(epoch from min(preemption_deadline) - now())::float8 from allocations
where state not in ('PENDING', 'TERMINATED') and preemption_deadline > now()
  and exists (select 1 from containers c where c.allocation_id = allocations.allocation_id
              and c.state <> 'TERMINATED' and c.want = 'RUN');

-- name: in_doubt
-- A member failed, and an agent of another that has not ended has been silent for $1 seconds.
select a.allocation_id, a.task_id, min(c.rank) filter (where {{failed}}) as rank,
       array_agg(distinct c.agent_id order by c.agent_id) filter (where p.agent_id is not null) as unheard,
       array_agg(distinct g.pool) filter (where p.agent_id is not null) as pools
from allocations a
join containers c on c.allocation_id = a.allocation_id
left join agents g on g.agent_id = c.agent_id
left join agent_presence p on p.agent_id = c.agent_id and c.state <> 'TERMINATED'
    and p.last_seen_at < now() - make_interval(secs => $1)
where a.state = 'TERMINATING' and a.exit_reason = ''
group by a.allocation_id, a.task_id
having bool_or({{failed}}) and bool_or(p.agent_id is not null)
order by a.allocation_id limit $2;

-- name: note_doubts
update allocations a set exit_reason = n.reason, version = a.version + 1
from unnest($1::text[], $2::text[]) as n (allocation_id, reason)
where a.allocation_id = n.allocation_id and a.state = 'TERMINATING' and a.exit_reason = ''
returning a.allocation_id;

-- name: place
-- What it waited for is over.
with over as (delete from allocation_waits where allocation_id = $1)
update allocations a set state = 'ASSIGNED', assigned_at = now(), version = version + 1,
    time_limit_s = (select j.time_limit_s from tasks t join jobs j on j.job_id = t.job_id where t.task_id = a.task_id)
where allocation_id = $1 and state = 'PENDING'
returning run_id, task_id, time_limit_s, greatest(0, extract(epoch from now() - requested_at))::float8 as waited_s;

-- name: put_credentials
-- Its own, and a session as its owner.
with owner as (
    select j.owner_id
    from allocations a join tasks t on t.task_id = a.task_id join jobs j on j.job_id = t.job_id
    where a.allocation_id = $3),
token as (
    insert into allocation_tokens (token_hash, allocation_id, user_id) select $1, $3, owner_id from owner
    on conflict do nothing)
insert into user_sessions (user_id, token_hash, allocation_id, expires_at)
select owner_id, $2, $3, 'infinity' from owner
on conflict do nothing;

-- name: drop_task_sessions
delete from user_sessions where allocation_id = any($1::text[]);

-- name: requests
-- Those that are open: attempts `a` of jobs `j`.
select a.allocation_id, a.state, a.slots, a.preemptible, a.single_node, a.blocked_agents, a.constraints, a.preemption,
       extract(epoch from a.requested_at)::float8 as requested_at,
       extract(epoch from a.assigned_at - a.requested_at)::float8 as waited_s,
       extract(epoch from case when a.over_time then a.preemption_deadline
               else least(a.assigned_at + make_interval(secs => {{time_limit}}), a.preemption_deadline) end)::float8 as ends_at,
       coalesce(b.over_time, false) as was_over_time, b.assigned_at is not null as has_run,
       coalesce(b.preemption_reason, '') as left_because,
       coalesce(y.expected_trials > y.trials, false) as asks_more,
       j.job_id, j.pool, j.priority, j.queue_position, j.weight, j.max_slots, {{time_limit}} as time_limit_s
from allocations a
join tasks t on t.task_id = a.task_id
join jobs j on j.job_id = t.job_id
left join trials tr on tr.id = t.trial_id
left join experiment_tallies y on y.experiment_id = tr.experiment_id
left join allocations b on b.task_id = a.task_id and b.run_id = a.run_id - 1
where a.state <> 'TERMINATED'

-- name: open_requests
-- As they usually come to their turn, which is then soon found: 100,000 out of order take a while.
{{requests}}
order by j.priority, j.queue_position, a.requested_at, a.allocation_id;

-- name: requests_of
{{requests}} and a.allocation_id = any($1::text[]);

-- name: changed_requests
-- What of the open requests other rows are about: attempts, also those before them ($1), and jobs ($2).
select o.allocation_id
from allocations c join allocations o on o.task_id = c.task_id and o.state <> 'TERMINATED'
where c.allocation_id = any($1::text[])
union
select o.allocation_id
from tasks t join allocations o on o.task_id = t.task_id and o.state <> 'TERMINATED'
where t.job_id = any($2::text[]);

-- name: attained
-- Slot seconds that the open jobs of these pools have held so far.
select t.job_id, sum(a.slots * extract(epoch from coalesce(a.ended_at, now()) - a.assigned_at))::float8 as slot_seconds
from jobs j
join tasks t on t.job_id = j.job_id
join allocations a on a.task_id = t.task_id
where j.pool = any($1::text[]) and j.ended_at is null and a.assigned_at is not null
group by t.job_id;

-- name: holding
-- Containers that still hold slots or an auxiliary place, whatever became of their allocation.
select c.allocation_id, c.agent_id, c.slots from containers c where c.gone_at is null

-- name: placements
{{holding}}
order by c.allocation_id, c.rank;

-- name: placements_of
{{holding}} and c.allocation_id = any($1::text[])
order by c.allocation_id, c.rank;

-- name: seen
-- What the transaction sees, and when.
select pg_current_snapshot()::text as snapshot, extract(epoch from now())::float8 as at;

-- name: cluster_changes
-- What a transaction wrote that $1 did not see, and this one does: what was under way then, or began later. Not all
-- since the oldest under way: somebody else's may stay open for hours.
select kind, id from cluster_changes where xid >= pg_snapshot_xmax($1::text::pg_snapshot)
union
select kind, id from cluster_changes where xid = any(array(select pg_snapshot_xip($1::text::pg_snapshot)));

-- name: forget_cluster_changes
-- What $1 has seen; and what comes from another server, with the rest of a copy.
delete from cluster_changes
where pg_visible_in_snapshot(xid, $1::text::pg_snapshot) or xid >= pg_snapshot_xmax(pg_current_snapshot());

-- name: any_waits
select exists (select 1 from allocations where state = 'PENDING') or exists (select 1 from allocation_waits);

-- name: waits
select allocation_id, reason from allocation_waits;

-- name: put_waits
-- Of those that still wait: another transaction may have placed or withdrawn one meanwhile.
insert into allocation_waits (allocation_id, reason)
select w.allocation_id, w.reason
from unnest($1::text[], $2::text[]) as w (allocation_id, reason)
join allocations a on a.allocation_id = w.allocation_id and a.state = 'PENDING'
on conflict (allocation_id) do update set reason = excluded.reason
returning allocation_id;

-- name: drop_wait
delete from allocation_waits where allocation_id = any($1::text[]);

-- name: lock_members
select allocation_id, container_id, agent_id, rank, slots, state, want, version, exit, daemon,
       extract(epoch from ended_at)::float8 as ended_at
from containers
where allocation_id = any($1::text[]) order by allocation_id, rank for no key update;

-- name: failed
-- Whether the exit of a container `c` is the failure of its script.
c.exit is not null and (c.exit ->> 'code')::int is distinct from 0
    and not coalesce((c.exit ->> 'platform')::boolean, false) and not coalesce((c.exit ->> 'asked')::boolean, false)

-- name: failed_attempts
-- Of the open attempts of the containers $1: those of which a member has failed, or is about to, being one of $2; with
-- all members, since it may turn out only later whose failure was the first.
select a.allocation_id, a.task_id, array_agg(c.container_id order by c.rank) as members
from allocations a join containers c on c.allocation_id = a.allocation_id
where a.state <> 'TERMINATED'
  and a.allocation_id in (select m.allocation_id from containers m where m.container_id = any($1::text[]))
group by a.allocation_id, a.task_id
having bool_or({{failed}}) or bool_or(c.want = 'RUN' and c.container_id = any($2::text[]));

-- name: last_failed
-- Of the newest attempt of a trial that came to have members those that failed, or all where none has.
with own as (
    select c.container_id, c.rank, {{failed}} as failed from containers c
    where c.allocation_id = (select a.allocation_id from tasks k join allocations a on a.task_id = k.task_id
                             where k.trial_id = $1
                               and exists (select 1 from containers m where m.allocation_id = a.allocation_id)
                             order by a.run_id desc limit 1))
select container_id from own where failed or not exists (select 1 from own where failed) order by rank;

-- name: failed_before
-- Of these attempts of trials the newest runs before them that failed, where the attempt came exactly as far as they:
-- their last reports are of one step, or there is none, and none has saved since. Runs between them that the platform
-- ended, or that left when asked to, say nothing of the code.
select a.allocation_id as attempt, b.allocation_id, b.task_id, array_agg(c.container_id order by c.rank) as members
from allocations a
join tasks t on t.task_id = a.task_id and t.trial_id is not null
cross join lateral (
    select p.allocation_id, p.task_id, p.run_id from allocations p
    where p.task_id = a.task_id and p.run_id < a.run_id
      and exists (select 1 from containers c where c.allocation_id = p.allocation_id and {{failed}})
    order by p.run_id desc limit 1) b
join containers c on c.allocation_id = b.allocation_id
where a.allocation_id = any($1::text[]) and {{failed}}
  and not exists (select 1 from checkpoints k where k.trial_id = t.trial_id and k.run_id >= b.run_id)
  and (
    select max(r.step) filter (where r.run_id = a.run_id)
        is not distinct from max(r.step) filter (where r.run_id = b.run_id)
    from metric_groups g cross join lateral (
        select m.run_id, m.last_step as step
        from metric_blocks m where m.month = g.month and m.trial_id = g.trial_id and m.grp = g.grp and m.run_id >= b.run_id
        union all
        select m.run_id, unnest(m.steps)
        from metric_tail m where m.month = g.month and m.trial_id = g.trial_id and m.grp = g.grp and m.run_id >= b.run_id) r
    where g.trial_id = t.trial_id and g.last_step >= 0 and r.step >= 0)
group by a.allocation_id, b.allocation_id, b.task_id;

-- name: create
-- With the slots that they hold from now on.
with made as (
    insert into containers (container_id, allocation_id, rank, agent_id, slots)
    select n.container_id, $1, n.rank, n.agent_id, n.slots::integer[]
    from unnest($2::text[], $3::integer[], $4::text[], $5::text[]) as n (container_id, rank, agent_id, slots)
    returning container_id, agent_id, slots)
insert into slots_in_use (agent_id, slot_id, container_id) select agent_id, unnest(slots), container_id from made;

-- name: set_states_of_members
update containers c
set state = n.state, want = n.want, exit = n.exit, daemon = n.daemon, version = c.version + 1,
    address = case when n.address = '' then c.address else n.address end,
    started_at = case when n.state = 'RUNNING' then coalesce(c.started_at, now()) else c.started_at end,
    ended_at = case when n.state = 'TERMINATED' then coalesce(c.ended_at, now()) end
from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::jsonb[], $6::text[], $7::boolean[])
    as n (container_id, version, state, want, exit, address, daemon)
where c.container_id = n.container_id and c.version = n.version
returning c.container_id;

-- name: gone
with gone as (
    update containers set gone_at = now(), version = version + 1
    where container_id = any($1::text[]) and agent_id = $2 and gone_at is null and state = 'TERMINATED'
    returning container_id),
freed as (delete from slots_in_use u using gone where u.container_id = gone.container_id)
select container_id from gone;

-- name: desired_containers
-- All containers of an agent that are not gone, with what their specification is made of.
select c.container_id, c.allocation_id, c.rank, c.slots, c.want, c.state,
       a.task_id, a.run_id, t.kind as task_kind, t.spec, j.pool,
       (select count(*) from containers m where m.allocation_id = c.allocation_id)::int as members,
       tr.id as trial_id, tr.experiment_id, tr.hparams, tr.seed as trial_seed, tr.warm_start_checkpoint,
       d.config, coalesce(d.context_hash, l.context_hash) as context_hash,
       u.id as owner_id, u.username,
       coalesce(w.agent_uid, u.agent_uid) as agent_uid, coalesce(w.agent_gid, u.agent_gid) as agent_gid,
       coalesce(w.agent_user, u.agent_user) as agent_user, coalesce(w.agent_group, u.agent_group) as agent_group,
       coalesce((select s.kind from agent_slots s where s.agent_id = c.agent_id and s.slot_id = c.slots[1]), 'cpu') as device_kind,
       ck.uuid as latest_checkpoint, coalesce(ck.steps_completed, 0) as steps_completed,
       coalesce(ck.reported_at < (select restored_at from cluster), false) as checkpoint_in_doubt
from containers c
join allocations a on a.allocation_id = c.allocation_id
join tasks t on t.task_id = a.task_id
join jobs j on j.job_id = t.job_id
left join launched_tasks l on l.task_id = t.task_id
left join trials tr on tr.id = t.trial_id
left join experiment_documents d on d.experiment_id = tr.experiment_id
left join experiments e on e.id = tr.experiment_id
left join projects p on p.id = e.project_id
left join workspaces w on w.id = coalesce(p.workspace_id, (t.spec ->> 'as_in_workspace')::bigint, l.workspace_id)
left join users u on u.id = j.owner_id
left join lateral (
    select uuid, steps_completed, reported_at from checkpoints k
    where k.trial_id = tr.id and k.state = 'COMPLETED' and not k.superseded and not k.removal_requested
    order by steps_completed desc, reported_at desc limit 1) ck on true
where c.agent_id = $1 and c.gone_at is null
order by c.container_id;

-- name: arrive
insert into rendezvous_members (container_id, allocation_id)
select container_id, allocation_id from containers where container_id = $1 and allocation_id = $2
on conflict (container_id) do nothing;

-- name: members
select c.container_id, c.rank, c.agent_id, c.state, c.address, cardinality(c.slots) as slots, c.exit ->> 'reason' as exit_reason,
       m.container_id is not null as arrived, a.state as allocation_state, a.exit_reason as allocation_reason
from containers c
join allocations a on a.allocation_id = c.allocation_id
left join rendezvous_members m on m.container_id = c.container_id
where c.allocation_id = $1
order by c.rank;

-- name: lock_allocation
-- Those who gather come one after the other, so that the order of their arrival is the same for all.
select state from allocations where allocation_id = $1 for no key update;

-- name: bring
insert into all_gathers (allocation_id, request_uuid, num_peers, data, arrived_at)
values ($1, $2, $3, $4, clock_timestamp())
on conflict (allocation_id, request_uuid) do nothing;

-- name: gatherers
select request_uuid, num_peers from all_gathers where allocation_id = $1 order by arrived_at, request_uuid;

-- name: gathered
select data::text from all_gathers
where allocation_id = $1 and request_uuid = any($2::text[])
order by arrived_at, request_uuid;

-- name: drop_gathering
delete from all_gathers where allocation_id = $1 and request_uuid = any($2::text[]);

-- name: signal
-- And whether the agent of its chief has been silent for $2 seconds.
select a.preemption, a.state, a.listens,
       coalesce(p.last_seen_at < now() - make_interval(secs => $2), false) as unheard
from allocations a
left join containers c on c.allocation_id = a.allocation_id and c.rank = 0
left join agent_presence p on p.agent_id = c.agent_id
where a.allocation_id = $1;

-- name: listens
update allocations set listens = true where allocation_id = $1 and not listens;

-- name: is_member
select exists (select 1 from containers where container_id = $2 and allocation_id = $1);

-- name: put_accelerators
insert into allocation_accelerators (container_id, allocation_id, data)
select container_id, allocation_id, $3 from containers where container_id = $2 and allocation_id = $1
on conflict (container_id) do update set data = excluded.data, reported_at = now();
