-- name: trials
select id, request_id, state, hparams from trials where experiment_id = $1 order by id;

-- name: last_entry
select coalesce(max(seq), 0) from search_journal where experiment_id = $1;

-- name: unseen
-- Facts of these trials that the search has not seen, oldest first.
select id, fact from search_inbox where experiment_id = $1 and trial_id = any($2::bigint[]) and seq is null order by id;

-- name: forget_exits
-- The same attempt may end once more: what was told of it stays under the number of its journal entry.
update search_inbox set at_key = - seq
where experiment_id = $1 and trial_id = any($2::bigint[]) and kind = 'exit' and at_key >= 0;

-- name: reopen
update trials
set state = 'ACTIVE', wish = 'RUN', wish_reason = '', reason = $3, restarts = 0, setbacks = 0, held_until = null,
    invalid_hp = false, fatal = null, ended_at = null, hparams = $2, version = version + 1
where id = $1;

-- name: reopen_tasks
update tasks set ended_at = null where trial_id = any($1::bigint[]);

-- name: no_progress
update trial_telemetry set progress = null, runner_state = '' where trial_id = any($1::bigint[]);

-- name: revive_job
-- Its place in the queue stays.
update jobs
set ended_at = null, pool = $2, priority = $3, weight = $4, max_slots = $5, version = version + 1
where job_id = $1;

-- name: set_documents
update experiment_documents
set config = $2, name = $3, description = $4, labels = $5
where experiment_id = $1;
