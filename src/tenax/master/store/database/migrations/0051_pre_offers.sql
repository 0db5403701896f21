-- By which offer of its pool a machine was rented; empty: before there were several.
alter table machines add column offer text not null default '';
-- What it costs per hour; none: nobody knows.
alter table machines add column price double precision check (price >= 0);
-- Since when it is paid for: the provider answered that it is there, or it was seen. Until it has ended.
alter table machines add column rented_at timestamptz;
update machines set rented_at = planned_at where provider_id <> '';

-- Offers of which nothing is rented for a while, since something went wrong.
create table offer_rests (
    pool text not null,
    -- With its zone where it is of one, else that of all.
    offer text not null,
    -- sha256 of the settings that it went wrong with: with others it is over.
    settings bytea not null,
    cause text not null check (cause in ('NO_CAPACITY', 'OVER_QUOTA', 'NOT_ALLOWED', 'BAD_ORDER', 'REFUSED', 'NEVER_JOINED', 'LACKS')),
    -- In a row.
    failures integer not null check (failures > 0),
    story text not null,
    since timestamptz not null default now(),
    -- None: until the settings change.
    until timestamptz,
    primary key (pool, offer, settings)
);
