-- Quotas that were applied, the newest of which holds; without a document none does.
create table quotas (
    version bigint generated always as identity primary key,
    -- As it was written, for people, with their names of then.
    source text not null default '',
    -- By number.
    document jsonb,
    applied_by bigint references users (id) on delete set null,
    applied_at timestamptz not null default now()
);
-- What each has used in each workspace, in slot seconds, as of when it was last added up; 0: without a workspace.
create table quota_use (
    user_id bigint not null,
    workspace_id bigint not null,
    -- Each second counts half after a half-life.
    recent double precision not null,
    this_month double precision not null,
    primary key (user_id, workspace_id)
);
