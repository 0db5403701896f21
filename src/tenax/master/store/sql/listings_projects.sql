-- name: columns
select p.id, p.name, p.description, p.key, p.notes, p.workspace_id, w.name as workspace_name, p.owner_id,
       w.owner_id as workspace_owner_id, coalesce(u.username, '') as username, p.immutable,
       p.archived or w.archived as archived, p.state, p.error_message,
       held.experiments, live.active, newest.created_at as last_at, counted.runs

-- name: sources
from projects p
join workspaces w on w.id = p.workspace_id
left join users u on u.id = p.owner_id

-- name: held
-- Each from an index alone: a project may hold a hundred thousand.
left join lateral (
    select count(*)::int as experiments, max(e.id) as newest_id
    from experiments e where e.project_id = p.id) held on true
left join lateral (
    select count(*)::int as active from experiments e where e.project_id = p.id and e.ended_at is null) live on true
left join lateral (
    select count(*)::int as runs from run_numbers n where n.project_id = p.id) counted on true
left join experiments newest on newest.id = held.newest_id

-- name: matching
where ($1::bigint is null or p.workspace_id = $1)
  and ($2::bigint[] is null or p.id = any($2))
  and ($3::boolean is null or (p.archived or w.archived) = $3)
  and ($4::text is null or lower(p.name) = lower($4))
  and ($5::text[] is null or lower(u.username) = any($5))
  and ($6::bigint[] is null or p.owner_id = any($6))
