-- Which kinds of device there are is said in one place (`tenax.resources.DeviceKind`), and no longer here as well: a new
-- kind needs no migration.
alter table agent_slots drop constraint agent_slots_kind_check;
