-- How long each attempt of a job may hold what it was given, in seconds; what held of it when an attempt was placed; and
-- which attempts were asked to leave for it.
alter table jobs add column time_limit_s double precision check (time_limit_s > 0);
alter table allocations add column time_limit_s double precision,
    add column over_time boolean not null default false;
