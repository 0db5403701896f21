-- name: create
insert into cluster (cluster_id, name, secret) values ($1, $2, $3) on conflict do nothing;

-- name: rename
update cluster set name = $1 where name <> $1 and $1 <> '';

-- name: get
select cluster_id::text as cluster_id, generation, name, secret from cluster;

-- name: raise_generation
update cluster set generation = generation + (generation = $1)::int returning generation;
