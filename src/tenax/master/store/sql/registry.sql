-- name: registered
-- Which of these checkpoints are registered, each with one version that names it.
select distinct on (v.checkpoint_uuid) v.checkpoint_uuid as uuid, m.name as model, v.version
from model_versions v join models m on m.id = v.model_id
where v.checkpoint_uuid = any($1::text[])
order by v.checkpoint_uuid, m.id, v.version;
