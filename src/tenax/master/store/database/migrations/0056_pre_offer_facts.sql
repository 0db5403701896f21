-- What providers have said of offers of which something is not written: what a machine costs per hour, and its slots.
create table offer_facts (
    pool text not null,
    offer text not null,
    -- In US dollars; none: it has not said one yet.
    price double precision check (price >= 0),
    -- The call that was asked for it, and when.
    price_source text not null default '',
    priced_at timestamptz,
    slots integer check (slots >= 0),
    -- Also where there was no answer: it is not asked again at once.
    asked_at timestamptz not null default now(),
    primary key (pool, offer),
    check ((price is null) = (priced_at is null))
);
-- From where the price of a machine is: WRITTEN, ASKED or LISTED; empty: it has none, or was rented before this was kept.
alter table machines add column price_source text not null default '' check (price_source in ('', 'WRITTEN', 'ASKED', 'LISTED'));
-- When it was asked, or the day of the list; none: it was written.
alter table machines add column priced_at timestamptz;
-- The call that was asked, or the page of the list.
alter table machines add column price_where text not null default '';
