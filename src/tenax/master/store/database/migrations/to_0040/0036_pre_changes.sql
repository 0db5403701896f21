-- Followers of the live stream are told of what people edit: the rows say so themselves, whichever statement it was, as
-- credentials do. What changes with every trial has its wake-ups where it is written.
create function tell_changed() returns trigger language plpgsql as $$
begin
    perform pg_notify('tenax', tg_argv[0] || ':' || (coalesce(to_jsonb(new), to_jsonb(old)) ->> tg_argv[1]));
    return null;
end $$;

create trigger workspaces_changed after insert or update or delete on workspaces
    for each row execute function tell_changed('workspace', 'id');
create trigger projects_changed after insert or update or delete on projects
    for each row execute function tell_changed('project', 'id');
create trigger models_changed after insert or update or delete on models
    for each row execute function tell_changed('model', 'id');
create trigger model_versions_changed after insert or update or delete on model_versions
    for each row execute function tell_changed('model_version', 'id');
create trigger experiments_changed after insert or update of archived, project_id or delete on experiments
    for each row execute function tell_changed('experiment_edited', 'id');
create trigger experiment_documents_changed after update of name, description, notes, labels on experiment_documents
    for each row execute function tell_changed('experiment_edited', 'experiment_id');
