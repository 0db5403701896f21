-- name: registered
-- Which of these checkpoints are registered, each with one version that names it.
select distinct on (v.checkpoint_uuid) v.checkpoint_uuid as uuid, m.name as model, v.version
from model_versions v join models m on m.id = v.model_id
where v.checkpoint_uuid = any($1::text[])
order by v.checkpoint_uuid, m.id, v.version;

-- name: registered_of_experiment
select c.uuid, m.name as model, v.version
from trials t
join checkpoints c on c.trial_id = t.id
join model_versions v on v.checkpoint_uuid = c.uuid
join models m on m.id = v.model_id
where t.experiment_id = $1
order by c.uuid, m.id, v.version limit 1;
