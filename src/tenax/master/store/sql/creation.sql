-- name: create_job
insert into jobs (job_id, pool, priority, weight, max_slots, queue_position, owner_id)
values ($1, $2, $3, $4, $5, floor(extract(epoch from clock_timestamp()) * 1000000), $6);

-- name: create_experiment
insert into experiments (job_id, owner_id, project_id, parent_id) values ($1, $2, $3, $4) returning id;

-- name: create_documents
insert into experiment_documents (experiment_id, name, description, labels, original_config, config, seed, context_hash, notices)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- name: expect_trials
-- The configuration alone does not say how many points a grid has.
update experiment_tallies set expected_trials = $2 where experiment_id = $1 and expected_trials is distinct from $2;
