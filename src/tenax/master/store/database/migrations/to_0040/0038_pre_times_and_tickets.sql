-- For how long what is trained elsewhere ran, as its script says; null: not said, from its start to its end.
alter table unmanaged_trials add column ran_s double precision check (ran_s >= 0);

-- A ticket opens the web page for whoever is logged in elsewhere: once, and soon. The session that it makes is no fresher
-- and lives no longer than the credential that the ticket was made with; that of an access token ends when it is revoked.
create table page_tickets (
    ticket_hash bytea primary key check (octet_length(ticket_hash) = 32),
    user_id bigint not null references users (id) on delete cascade,
    access_token_id bigint references access_tokens (id) on delete cascade,
    expires_at timestamptz not null,
    -- Of the login that it was made with.
    logged_in_at timestamptz not null,
    session_ends_at timestamptz not null
);
create index page_tickets_user on page_tickets (user_id);
create index page_tickets_access_token on page_tickets (access_token_id) where access_token_id is not null;

alter table user_sessions add column access_token_id bigint references access_tokens (id) on delete cascade;
create index user_sessions_access_token on user_sessions (access_token_id) where access_token_id is not null;
