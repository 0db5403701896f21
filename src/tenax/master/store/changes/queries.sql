-- Rows that can be followed. ``seq`` is the transaction that wrote the row last, or the workspace with which it is archived.

-- name: projects
select p.id, p.name, p.description, p.archived or w.archived as archived, extract(epoch from p.created_at)::float8 as created_at, p.notes, p.workspace_id,
       p.owner_id as user_id, p.immutable, p.state, p.key, greatest(p.xmin::text::bigint, w.xmin::text::bigint) as seq
from projects p join workspaces w on w.id = p.workspace_id
where (coalesce($1::bigint[], $2::bigint[]) is null or p.workspace_id = any($1::bigint[]) or p.id = any($2::bigint[]))
  and $3::bigint[] is null
order by p.id;

-- name: models
select m.id, m.name, m.description, m.archived or w.archived as archived, extract(epoch from m.created_at)::float8 as creation_time, m.notes, m.workspace_id,
       m.owner_id as user_id, extract(epoch from m.updated_at)::float8 as last_updated_time, m.metadata, m.labels,
       greatest(m.xmin::text::bigint, w.xmin::text::bigint) as seq
from models m join workspaces w on w.id = m.workspace_id
where coalesce($1::bigint[], $2::bigint[], $3::bigint[]) is null or m.workspace_id = any($1::bigint[]) or m.id = any($2::bigint[]) or m.owner_id = any($3::bigint[])
order by m.id;

-- name: versions
select v.id, v.name, v.version, v.checkpoint_uuid, extract(epoch from v.created_at)::float8 as creation_time,
       extract(epoch from v.updated_at)::float8 as last_updated_time, v.metadata, v.model_id, v.owner_id as user_id, v.comment, v.labels,
       v.notes, m.workspace_id, v.xmin::text::bigint as seq
from model_versions v join models m on m.id = v.model_id
where coalesce($1::bigint[], $2::bigint[], $3::bigint[]) is null or v.model_id = any($1::bigint[]) or v.id = any($2::bigint[]) or v.owner_id = any($3::bigint[])
order by v.id;

-- name: newest
-- A number that no row has beyond: one that is larger was counted in another database.
select pg_snapshot_xmax(pg_current_snapshot())::text::bigint & 4294967295;
