-- What machines are, and what requests ask of them.
alter table agent_presence add column labels jsonb not null default '{}' check (jsonb_typeof(labels) = 'object');
-- Bytes, as its agent says.
alter table agent_slots add column memory bigint check (memory >= 0);
-- `resources.constraints` of the configuration that asked.
alter table allocations add column constraints jsonb check (jsonb_typeof(constraints) = 'object');
