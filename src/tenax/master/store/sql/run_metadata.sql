-- name: get
select metadata from run_metadata where trial_id = $1;

-- name: replace
insert into run_metadata (trial_id, metadata) values ($1, $2)
on conflict (trial_id) do update set metadata = excluded.metadata, modified_at = now();

-- name: drop_index
delete from run_metadata_index where trial_id = $1;

-- name: values_of
-- In order, each once, of a project's runs that are shown.
select distinct x.string_value
from run_metadata_index x
join trials t on t.id = x.trial_id
join experiments e on e.id = t.experiment_id
where e.project_id = $1 and e.state <> 'DELETING' and x.flat_key = $2 and x.string_value is not null
order by x.string_value
limit $3;
