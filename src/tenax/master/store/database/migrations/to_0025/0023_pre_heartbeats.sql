-- The number of an agent's newest connection is kept where its signs of life are noted: neither waits for the row of the
-- agent, which is locked by whoever changes what the agent should run.
-- No release has the old column: a master of a development version that still reads it is stopped before this runs.
alter table agent_presence add column session bigint not null default 0;
update agent_presence p set session = a.session from agents a where a.agent_id = p.agent_id;
alter table agents drop column session;
-- STOP: end it, with time to save. KILL: end it at once.
alter table containers drop constraint containers_want_check;
alter table containers add constraint containers_want_check check (want in ('RUN', 'STOP', 'KILL', 'GONE'));
