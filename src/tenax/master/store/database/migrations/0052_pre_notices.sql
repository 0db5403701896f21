-- What its cloud says of an agent's machine, and what is done about it; empty: nothing. For people, the same for as long
-- as it is the same notice.
alter table agents
    add column notice text not null default '',
    add column notice_plan text not null default '' check (notice_plan in ('', 'DRAIN', 'REPLACE', 'LEAVE')),
    -- When the machine ends; none: nobody says.
    add column notice_until timestamptz,
    add constraint agents_notice check ((notice = '') = (notice_plan = ''));
-- Seconds from the first of its files to its report; none of one that nobody announced.
alter table checkpoints add column upload_s double precision;
