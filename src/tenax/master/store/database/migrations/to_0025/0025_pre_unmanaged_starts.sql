-- Who began the newest run of a trial, and when: sent again before anything was reported of that run, it is the same one.
alter table unmanaged_trials add column begun_at timestamptz;
alter table unmanaged_trials add column begun_by bigint references users (id) on delete set null;
