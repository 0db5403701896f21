-- name: create
insert into webhooks (name, url, kind, mode, workspace_id, owner_id) values ($1, $2, $3, $4, $5, $6)
on conflict (coalesce(workspace_id, 0), lower(name)) where name <> '' do nothing
returning id;

-- name: add_trigger
insert into webhook_triggers (webhook_id, kind, condition) values ($1, $2, $3);

-- name: all
select h.id, h.name, h.url, h.kind, h.mode, h.workspace_id, w.owner_id as workspace_owner_id
from webhooks h left join workspaces w on w.id = h.workspace_id
where ($1::bigint is null or h.id = $1)
  -- Those of all workspaces, and of one's own.
  and ($2::bigint is null or h.workspace_id is null or w.owner_id = $2)
order by h.id;

-- name: triggers
select id, webhook_id, kind, condition from webhook_triggers where webhook_id = any($1::bigint[]) order by id;

-- name: lock
select id from webhooks where id = $1 for no key update;

-- name: set_url
update webhooks set url = $2 where id = $1 returning id;

-- name: delete
delete from webhooks where id = $1 returning id;

-- name: due
-- The oldest message that waits of each webhook, where its time has come.
select d.id, d.event_id::text, d.webhook_id, h.url, h.kind, d.event, d.attempts
from webhooks h
cross join lateral (
    select * from webhook_deliveries w where w.webhook_id = h.id and w.state = 'WAITING' order by w.id limit 1) d
where d.next_at <= now() and ($1::bigint is null or h.id = $1)
order by d.id;

-- name: next_due
select extract(epoch from min(d.next_at) - now())::float8
from webhooks h
cross join lateral (
    select next_at from webhook_deliveries w where w.webhook_id = h.id and w.state = 'WAITING' order by w.id limit 1) d;

-- name: begin
-- Whoever dies of it makes the next attempt wait, too.
update webhook_deliveries set attempts = attempts + 1, next_at = now() + make_interval(secs => $3)
where id = $1 and state = 'WAITING' and attempts = $2
returning extract(epoch from now() - created_at)::float8;

-- name: finish
update webhook_deliveries
set state = $3, outcome = $4, next_at = now() + make_interval(secs => $5),
    ended_at = case when $3 = 'WAITING' then null else now() end
where id = $1 and state = 'WAITING' and attempts = $2;

-- name: forget
delete from webhook_deliveries where ended_at < now() - make_interval(days => $1);

-- name: count_deliveries
select count(*) from webhook_deliveries where webhook_id = $1;

-- name: deliveries
select id, event_id::text, event, state, attempts, outcome, created_at, ended_at
from webhook_deliveries where webhook_id = $1 order by id desc limit $2 offset $3;

-- name: is_for
-- Whether a webhook is told of an experiment that wishes this.
(h.workspace_id is null or h.workspace_id = x.workspace_id)
  and case h.mode
      when 'WORKSPACE' then not coalesce((x.wishes ->> 'exclude')::boolean, false)
      else coalesce(x.wishes -> 'webhook_id' @> to_jsonb(h.id), false)
        or coalesce(x.wishes -> 'webhook_name' @> to_jsonb(h.name), false) end

-- name: triggers_of_experiment
-- The triggers for this kind of event of an experiment: one message for each, as in Determined.
select h.id as webhook_id, t.id as trigger_id, t.condition, h.kind
from webhook_triggers t
join webhooks h on h.id = t.webhook_id
cross join (
    select p.workspace_id, d.config -> 'integrations' -> 'webhooks' as wishes
    from experiments e
    join projects p on p.id = e.project_id
    join experiment_documents d on d.experiment_id = e.id
    where e.id = $1) x
where t.kind = $2
  and ($3::text is null or t.condition ->> 'state' = $3)
  and ($4::bigint is null or t.id = $4)
  and {{is_for}}
order by h.id, t.id;

-- name: triggers_of_machines
-- Machines are of no workspace.
select h.id as webhook_id, t.condition, extract(epoch from now())::bigint as now
from webhook_triggers t join webhooks h on h.id = t.webhook_id
where t.kind = 'MACHINE' and t.condition ->> 'event' = $1 and h.workspace_id is null
order by h.id, t.id;

-- name: enqueue
-- Not beyond what may wait, and only for a webhook that is still there: who deletes one breaks nobody's change of state.
insert into webhook_deliveries (event_id, webhook_id, event)
select $1, h.id, $3
from webhooks h
where h.id = $2 and not exists (
    select 1 from webhook_deliveries where webhook_id = $2 and state = 'WAITING' order by id offset $4 - 1 limit 1)
for key share of h
returning id;

-- name: experiment
select e.id, e.state, d.name, e.owner_id, j.pool as resource_pool,
       coalesce((d.config -> 'resources' ->> 'slots_per_trial')::int, 1) as slots_per_trial,
       w.name as workspace, p.name as project, w.id as workspace_id, p.id as project_id,
       extract(epoch from coalesce(e.ended_at, now()) - coalesce(e.started_at, e.created_at))::bigint as duration,
       extract(epoch from now())::bigint as now
from experiments e
join experiment_documents d on d.experiment_id = e.id
join jobs j on j.job_id = e.job_id
join projects p on p.id = e.project_id
join workspaces w on w.id = p.workspace_id
where e.id = $1;

-- name: trial_of
select exists (select 1 from trials where id = $1 and experiment_id = $2);

-- name: log_triggers
-- Patterns that lines of a task's output are matched with.
select t.id as trigger_id, t.condition ->> 'regex' as regex
from webhook_triggers t
join webhooks h on h.id = t.webhook_id
cross join (
    select p.workspace_id, d.config -> 'integrations' -> 'webhooks' as wishes, coalesce(k.log_task_id, k.task_id) as log_task_id
    from tasks k
    join trials tr on tr.id = k.trial_id
    join experiments e on e.id = tr.experiment_id
    join projects p on p.id = e.project_id
    join experiment_documents d on d.experiment_id = e.id
    where k.task_id = $1) x
where t.kind = 'TASK_LOG'
  and {{is_for}}
  and not exists (select 1 from webhook_log_matches m where m.task_id = x.log_task_id and m.trigger_id = t.id)
order by t.id;

-- name: first_match
insert into webhook_log_matches (task_id, trigger_id)
select coalesce(k.log_task_id, k.task_id), t.id from tasks k cross join webhook_triggers t where k.task_id = $1 and t.id = $2
on conflict do nothing
returning trigger_id;

-- name: trigger
select t.webhook_id, t.condition, h.kind, extract(epoch from now())::bigint as now
from webhook_triggers t join webhooks h on h.id = t.webhook_id
where t.id = $1;

-- name: kind_of_task
-- And its trial, if it is the task of one.
select k.kind as task_type, tr.experiment_id, tr.id as trial_id
from tasks k left join trials tr on tr.id = k.trial_id where k.task_id = $1;
