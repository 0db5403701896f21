-- What a rented machine says of its own start, until its agent has joined.
create table machine_steps (
    machine_id text not null references machines on delete cascade,
    -- In the order in which it was said.
    number integer not null check (number >= 0),
    -- What it does, for people: ``install torch``.
    step text not null,
    state text not null check (state in ('begun', 'done', 'failed')),
    -- Why it failed; in one line.
    note text not null default '',
    said_at timestamptz not null default now(),
    primary key (machine_id, number)
);
