-- name: create
insert into webhooks (name, url, kind, mode, workspace_id, owner_id) values ($1, $2, $3, $4, $5, $6)
on conflict (coalesce(workspace_id, 0), lower(name)) do nothing
returning id;

-- name: add_trigger
insert into webhook_triggers (webhook_id, kind, condition) values ($1, $2, $3);

-- name: all
select h.id, h.name, h.url, h.kind, h.mode, h.workspace_id, w.owner_id as workspace_owner_id
from webhooks h left join workspaces w on w.id = h.workspace_id
where $1::bigint is null or h.id = $1
order by h.id;

-- name: triggers
select id, webhook_id, kind, condition from webhook_triggers where webhook_id = any($1::bigint[]) order by id;

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
