"""A past: experiments that have ended, with all that their trials left in tables of state, and some that still run.

async with database.transaction() as conn:
    await seed_past(conn, experiments=3000, trials_each=100)
"""

from __future__ import annotations

from asyncpg import Connection

#: Experiments ended a year ago at first, an hour ago at last. Every tenth one says itself how long output is kept.
_PAST = """
insert into users (id, username) values (1, 'owner') on conflict do nothing;
insert into workspaces (id, name) values (1, 'w') on conflict do nothing;
insert into projects (id, workspace_id, name) values (1, 1, 'p') on conflict do nothing;

insert into agents (agent_id, pool, credential_hash)
select 'past-' || n, 'default', sha256(n::text::bytea) from generate_series(1, 20) n;
insert into agent_slots (agent_id, slot_id, kind) select agent_id, 0, 'cpu' from agents where agent_id like 'past-%';
insert into agent_presence (agent_id, connected) select agent_id, true from agents where agent_id like 'past-%';

insert into jobs (job_id, pool, priority, queue_position, owner_id, submitted_at, ended_at)
select 'past-' || n, 'default', 42, n, 1, now() - interval '2 years', now() from generate_series(1, {experiments}) n;

insert into experiments (id, job_id, owner_id, project_id, state, created_at, ended_at)
select 1000000 + n, 'past-' || n, 1, 1, 'COMPLETED', now() - interval '2 years',
       now() - interval '1 hour' - interval '1 year' * (1 - n::float8 / {experiments})
from generate_series(1, {experiments}) n;

insert into experiment_documents (experiment_id, name, original_config, config, seed, log_retention_days)
select id, 'past', '', '{{"searcher": {{"name": "random", "metric": "loss"}}}}', 0, case when id % 10 = 0 then 300 end
from experiments where id > 1000000;

insert into trials
    (id, experiment_id, request_id, journal_seq, task_id, state, run_id, hparams, seed, created_at, ended_at)
select e.id * 1000 + k, e.id, k::text, k, e.id || '.' || k, 'COMPLETED', 1, '{{}}', 0, e.created_at, e.ended_at
from experiments e, generate_series(1, {trials_each}) k where e.id > 1000000;

insert into tasks (task_id, kind, job_id, trial_id, created_at, ended_at)
select t.task_id, 'TRIAL', e.job_id, t.id, t.created_at, t.ended_at
from trials t join experiments e on e.id = t.experiment_id where e.id > 1000000;

insert into allocations (allocation_id, task_id, run_id, state, slots, requested_at, ended_at)
select t.task_id || '.1', t.task_id, 1, 'TERMINATED', 1, t.created_at, t.ended_at
from trials t where t.experiment_id > 1000000;

insert into containers (container_id, allocation_id, rank, agent_id, slots, state, exit, ended_at, gone_at)
select t.task_id || '.1', t.task_id || '.1', 0, 'past-' || (1 + t.id % 20), '{{0}}', 'TERMINATED', '{{"code": 0}}',
       t.ended_at, t.ended_at
from trials t where t.experiment_id > 1000000;

insert into log_tasks (task_id, month, next_line, ended_at, keep_days)
select t.task_id, extract(year from t.created_at) * 100 + extract(month from t.created_at), 10, t.ended_at,
       d.log_retention_days
from trials t join experiment_documents d on d.experiment_id = t.experiment_id where t.experiment_id > 1000000;

insert into search_journal (experiment_id, seq, entry)
select e.id, k, '{{"v": 1, "kind": "past"}}'
from experiments e, generate_series(1, 2 * {trials_each}) k where e.id > 1000000;

insert into search_inbox (experiment_id, trial_id, kind, at_key, fact, seq)
select t.experiment_id, t.id, 'exit', 1, '{{"v": 1}}', t.journal_seq from trials t where t.experiment_id > 1000000;

insert into unmanaged_trials (trial_id, heard_at)
select t.id, t.ended_at from trials t where t.experiment_id > 1000000 and t.id % 10 = 0;
"""


async def seed_past(conn: Connection, *, experiments: int, trials_each: int) -> None:
    """Write it, without what triggers would add for lists. In a transaction of the caller's."""
    await conn.execute("set local session_replication_role = replica")
    await conn.execute(_PAST.format(experiments=experiments, trials_each=trials_each))
    await conn.execute("set local session_replication_role = origin")
