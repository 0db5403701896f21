-- Every uid that a user was ever linked with: what was saved before another link is theirs, unless the uid was another's, too.
create table user_uids (
    user_id bigint not null references users (id) on delete cascade,
    uid integer not null,
    primary key (user_id, uid)
);
create index user_uids_uid on user_uids (uid);

insert into user_uids select id, agent_uid from users where agent_uid is not null;

create function tenax_note_uid() returns trigger language plpgsql as $$
begin
    insert into user_uids values (new.id, new.agent_uid) on conflict do nothing;
    return null;
end $$;

create trigger users_note_uid after insert or update of agent_uid on users
    for each row when (new.agent_uid is not null) execute function tenax_note_uid();
