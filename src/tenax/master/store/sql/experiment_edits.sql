-- name: words
-- What is typed again later stands in the shown configuration, too; the original one stays as it was typed.
update experiment_documents
set name = coalesce($2, name), description = coalesce($3, description), notes = coalesce($4, notes),
    labels = coalesce($5, labels),
    config = config || jsonb_strip_nulls(jsonb_build_object('name', $2::text, 'description', $3::text, 'labels', to_jsonb($5::text[])))
where experiment_id = $1
returning experiment_id;

-- name: add_label
update experiment_documents
set labels = labels || $2::text, config = jsonb_set(config, '{labels}', to_jsonb(labels || $2::text))
where experiment_id = $1 and not $2 = any(labels);

-- name: remove_label
update experiment_documents
set labels = array_remove(labels, $2), config = jsonb_set(config, '{labels}', to_jsonb(array_remove(labels, $2)))
where experiment_id = $1 and $2 = any(labels);

-- name: labels
select labels from experiment_documents where experiment_id = $1;

-- name: popular_labels
-- Those that most experiments have come first.
select l.label
from experiments e
join experiment_documents d on d.experiment_id = e.id
cross join lateral unnest(d.labels) l (label)
where ($1::bigint is null or e.project_id = $1)
group by l.label
order by count(*) desc, l.label;

-- name: set_archived
update experiments set archived = $2, version = version + 1
where id = $1 and state in ('COMPLETED', 'CANCELED', 'ERROR', 'DELETE_FAILED')
returning id;

-- name: place
select e.archived, e.project_id, p.archived or w.archived as project_archived, p.name as project_name
from experiments e
join projects p on p.id = e.project_id
join workspaces w on w.id = p.workspace_id
where e.id = $1;

-- name: move
update experiments set project_id = $2, version = version + 1 where id = $1 and project_id <> $2;

-- name: set_max_slots
update jobs set max_slots = $2, version = version + 1 where job_id = $1;

-- name: note_in_config
update experiment_documents
set config = jsonb_set(config, array['resources', $2::text], coalesce($3::jsonb, 'null'), true)
where experiment_id = $1 and jsonb_typeof(config -> 'resources') = 'object';

-- name: set_log_retention
update experiment_documents set log_retention_days = $2 where experiment_id = $1;

-- name: inherit_log_retention
-- What was said of single trials before is over.
update trials set log_retention_days = null where experiment_id = $1 and log_retention_days is not null;
