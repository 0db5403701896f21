-- Where the ranks of a trial stand still, as whoever watches them in the task says; empty: they do not. Of which run, and
-- whether that ended them.
alter table trial_telemetry
    add column hang text not null default '',
    add column hang_run_id integer,
    add column hang_ends boolean not null default false;
