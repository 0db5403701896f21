-- name: columns
select p.id, p.name, p.description, p.key, p.notes, p.workspace_id, w.name as workspace_name, p.owner_id,
       w.owner_id as workspace_owner_id, coalesce(u.username, '') as username, p.immutable,
       p.archived or w.archived as archived, p.state, p.error_message,
       coalesce(held.experiments, 0) as experiments, coalesce(held.active, 0) as active, held.last_at,
       coalesce(counted.runs, 0) as runs

-- name: sources
from projects p
join workspaces w on w.id = p.workspace_id
left join users u on u.id = p.owner_id

-- name: held
left join lateral (
    select count(*)::int as experiments, count(*) filter (where e.ended_at is null)::int as active,
           max(e.created_at) as last_at
    from experiments e where e.project_id = p.id) held on true
left join lateral (
    select count(*)::int as runs from run_numbers n where n.project_id = p.id) counted on true

-- name: matching
where ($1::bigint is null or p.workspace_id = $1)
  and ($2::bigint[] is null or p.id = any($2))
  and ($3::boolean is null or (p.archived or w.archived) = $3)
  and ($4::text is null or lower(p.name) = lower($4))
  and ($5::text[] is null or lower(u.username) = any($5))
  and ($6::bigint[] is null or p.owner_id = any($6))
