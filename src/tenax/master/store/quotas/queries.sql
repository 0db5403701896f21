-- name: current
select q.version, q.source, q.document, q.applied_at, coalesce(u.username, '') as applied_by
from quotas q left join users u on u.id = q.applied_by
order by q.version desc limit 1;

-- name: lock
-- One change at a time.
select pg_advisory_xact_lock(hashtextextended('quotas', 0));

-- name: apply
insert into quotas (source, document, applied_by) values ($1, $2, $3);

-- name: users
select id, lower(username) as name from users where lower(username) = any($1::text[]);

-- name: workspaces
select id, lower(name) as name from workspaces where lower(name) = any($1::text[]);

-- name: groups
select id, lower(name) as name from user_groups where lower(name) = any($1::text[]);

-- name: all_users
select username as name from users order by id limit 10000;

-- name: all_workspaces
select name from workspaces order by id limit 10000;

-- name: all_groups
select name from user_groups order by id limit 10000;

-- name: forget_use
delete from quota_use;

-- name: add_up_use
-- What ended ten half-lives ago counts a thousandth, and is left out. A second that was used t seconds ago counts
-- exp(-t / $1), $1 being the half-life over ln 2: over the time that something was held that is an integral. An exp of
-- less than -700 is an error there, and nothing here.
insert into quota_use (user_id, workspace_id, recent, this_month)
select u.user_id, coalesce(u.workspace_id, 0),
       sum(u.slots * $1::float8 * (exp(greatest(-700, -extract(epoch from now() - span.ends)::float8 / $1))
                                   - exp(greatest(-700, -extract(epoch from now() - u.started_at)::float8 / $1)))),
       sum(u.slots * greatest(0, extract(epoch from span.ends - greatest(u.started_at, span.month)))::float8)
from usage u
cross join lateral (select least(coalesce(u.ended_at, now()), now()) as ends,
                           date_trunc('month', now() at time zone 'utc') at time zone 'utc' as month) span
where u.slots > 0 and u.started_at < now()
  and (u.ended_at is null
       or u.ended_at > least(now() - make_interval(secs => $1 * 7), date_trunc('month', now() at time zone 'utc') at time zone 'utc'))
group by 1, 2;

-- name: use
select user_id, workspace_id, recent, this_month from quota_use;

-- name: associations_of_open_jobs
select j.job_id, j.owner_id, coalesce(p.workspace_id, l.workspace_id, 0) as workspace_id
from jobs j
left join experiments e on e.job_id = j.job_id
left join projects p on p.id = e.project_id
left join lateral (
    select l.workspace_id from tasks o join launched_tasks l on l.task_id = o.task_id
    where o.job_id = j.job_id and e.id is null order by o.created_at, o.task_id limit 1) l on true
where j.ended_at is null;

-- name: charged
-- As whom attempts hold what they hold, where their experiment is filed in another workspace by now.
select distinct u.allocation_id, u.user_id, coalesce(u.workspace_id, 0) as workspace_id
from usage u
join experiments e on e.id = u.experiment_id
join projects p on p.id = e.project_id
where u.ended_at is null and u.slots > 0 and u.workspace_id is distinct from p.workspace_id;

-- name: open_experiments
-- Those of these, or of this project, whose jobs are open and that are not in the workspace $3 already, one for each
-- owner and priority.
select distinct on (j.owner_id, j.priority) e.id, j.owner_id, j.priority
from experiments e
join jobs j on j.job_id = e.job_id
join projects p on p.id = e.project_id
where (e.id = any($1::bigint[]) or e.project_id = $2) and p.workspace_id <> $3 and j.ended_at is null
order by j.owner_id, j.priority, e.id;

-- name: memberships
select user_id, array_agg(group_id) as groups from user_group_members group by user_id;

-- name: groups_of
select group_id from user_group_members where user_id = $1;

-- name: names
select 'user' as kind, id, username as name from users where id = any($1::bigint[])
union all select 'workspace', id, name from workspaces where id = any($2::bigint[])
union all select 'group', id, name from user_groups where id = any($3::bigint[]);

-- name: held
-- Slots that each holds in each workspace.
select u.user_id, coalesce(u.workspace_id, 0) as workspace_id, sum(u.slots)::int as slots
from usage u where u.ended_at is null group by 1, 2;
