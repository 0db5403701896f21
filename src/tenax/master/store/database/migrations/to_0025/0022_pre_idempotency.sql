-- Requests that created something, by the key that their sender gave them, with the answer.
create table idempotency_keys (
    user_id bigint not null references users (id) on delete cascade,
    key text not null check (length(key) between 1 and 255),
    digest bytea not null,
    -- Empty until the transaction that creates is about to be committed.
    answer bytea not null default '',
    created_at timestamptz not null default now(),
    primary key (user_id, key)
);

create index idempotency_keys_created_at on idempotency_keys (created_at);
