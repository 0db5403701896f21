-- What ran on rented machines, machine by machine: ids of machines begin so. Empty where nothing is rented.
create index usage_of_machines on usage (agent_id, started_at) where agent_id like 'm-%';
-- Machines that were paid for since a moment: those that ended after it, and those that have not.
create index machines_ended on machines (ended_at);
