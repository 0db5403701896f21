-- Why an agent takes no work, where nobody said so.
alter table agents add column reason text not null default '';
-- When it is tried again, where it was taken out by itself.
alter table agents add column rests_until timestamptz;
-- What is wrong with a device, as its agent says.
alter table agent_slots add column fault text not null default '';
-- Starts that failed there one after the other for reasons that were not theirs, since one succeeded.
create table agent_setbacks (
    agent_id text not null references agents on delete cascade,
    container_id text not null,
    owner_id bigint not null references users (id) on delete cascade,
    reason text not null,
    ended_at timestamptz not null default now(),
    primary key (agent_id, container_id));
