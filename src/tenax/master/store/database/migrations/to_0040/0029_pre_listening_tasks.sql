-- Whether the script has ever asked to be told of a preemption: one that has not cannot save when it is paused.
alter table allocations add column listens boolean not null default false;
