-- By which offer of its pool a machine was rented; empty: before there were several.
alter table machines add column offer text not null default '';
-- What it costs per hour; none: nobody knows.
alter table machines add column price double precision check (price >= 0);
