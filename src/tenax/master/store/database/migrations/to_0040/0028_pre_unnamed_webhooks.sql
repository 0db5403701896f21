-- A webhook may have no name; those that have one are found by it.
alter table webhooks drop constraint webhooks_name_check;
alter table webhooks add constraint webhooks_name_check check (length(name) <= 255);
drop index webhooks_name;
create unique index webhooks_name on webhooks (coalesce(workspace_id, 0), lower(name)) where name <> '';
