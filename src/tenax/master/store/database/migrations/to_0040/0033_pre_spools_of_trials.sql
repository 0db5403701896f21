-- A script that runs outside of the cluster has no allocation: its spools are its trial's.
alter table spool_streams alter column allocation_id drop not null;
alter table spool_streams add column trial_id bigint references trials (id) on delete cascade;
alter table spool_streams add constraint spool_streams_owner_check check (num_nonnulls(allocation_id, trial_id) = 1);
create index spool_streams_trial on spool_streams (trial_id) where trial_id is not null;
