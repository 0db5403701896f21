-- name: searched
-- Which metric the searches of these experiments look at, and whether any of them goes on.
select d.config -> 'searcher' ->> 'metric' as metric, e.ended_at is null as going_on
from experiments e join experiment_documents d on d.experiment_id = e.id
where e.id = any($1::bigint[]);

-- name: validations
-- What the search was told, oldest first; the first report of each step counts.
select i.trial_id, i.created_at as at, (i.fact ->> 'metric')::float8 as metric
from search_inbox i
where i.experiment_id = $1 and i.kind = 'validation'
order by i.id;

-- name: best_trials
-- Those with the best validations; those without one come last.
select t.id, t.hparams
from trials t
join experiment_tallies y on y.experiment_id = t.experiment_id
left join trial_telemetry m on m.trial_id = t.id
where t.experiment_id = $1
order by m.best_metric is null, tenax_rank(m.best_metric, y.smaller_is_better), t.id
limit $2;
