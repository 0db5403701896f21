-- name: origins
select distinct origin from log_chunks, jsonb_array_elements(origins) origin where month = $1 and task_id = $2;

-- name: task_of_trial
select task_id from trials where id = $1;
