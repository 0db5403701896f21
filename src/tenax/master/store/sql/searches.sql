-- name: journal
select seq, entry from search_journal where experiment_id = $1 and seq > $2 order by seq;

-- name: append
insert into search_journal (experiment_id, seq, entry) values ($1, $2, $3);

-- name: waiting
select i.id, i.trial_id, t.request_id, i.kind, i.at_key, i.fact
from search_inbox i join trials t on t.id = i.trial_id
where i.experiment_id = $1 and i.seq is null
order by i.id
limit $2;

-- name: move
update search_inbox set seq = $2 where id = $1 and seq is null returning id;

-- name: dirty
-- Experiments, of these or of all, whose search has something to do: never started, or with facts that wait.
select e.id from experiments e
where ($1::bigint[] is null or e.id = any($1))
  and e.ended_at is null and not e.unmanaged and e.state in ('ACTIVE', 'PAUSED')
  and (not exists (select 1 from search_journal j where j.experiment_id = e.id)
       or exists (select 1 from search_inbox i where i.experiment_id = e.id and i.seq is null))
order by e.id;

-- name: going_on
select id from experiments where ended_at is null and not unmanaged and state in ('ACTIVE', 'PAUSED');
