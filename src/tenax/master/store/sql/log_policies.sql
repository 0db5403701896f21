-- name: watched
-- Of a trial's task: its policies, and those that have matched.
select k.trial_id, t.run_id, d.config -> 'log_policies' as policies,
       coalesce((select jsonb_agg(jsonb_build_array(m.policy, m.action, m.agent_id))
                 from log_matches m where m.trial_id = k.trial_id), '[]') as matched,
       exists (select 1 from webhook_triggers w where w.kind = 'TASK_LOG') as any_triggers
from tasks k
join trials t on t.id = k.trial_id
join experiment_documents d on d.experiment_id = t.experiment_id
where k.task_id = $1;

-- name: record
insert into log_matches (trial_id, policy, action, agent_id, run_id, line)
select t.id, $2, $3, $4, t.run_id, $5 from trials t where t.id = $1
on conflict do nothing
returning policy;

-- name: no_retry
select policy from log_matches where trial_id = $1 and action = 'CANCEL_RETRIES' order by matched_at, policy limit 1;

-- name: excluded
select distinct agent_id from log_matches where trial_id = $1 and action = 'EXCLUDE_NODE' and agent_id <> '' order by 1;
