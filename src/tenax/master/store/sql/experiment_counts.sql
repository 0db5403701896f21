-- name: more_than
select exists (select 1 from experiment_counts offset $1);

-- name: fold
with taken as (
    delete from experiment_counts returning *)
insert into experiment_counts (project_id, owner_id, state, archived, change)
select project_id, owner_id, state, archived, sum(change) from taken
group by project_id, owner_id, state, archived
having sum(change) <> 0;
