-- Followers of the live stream are told of people, groups, tokens, templates and webhooks, too.
create trigger users_changed after insert or update or delete on users
    for each row execute function tell_changed('user', 'id');
create trigger user_groups_changed after insert or update or delete on user_groups
    for each row execute function tell_changed('group', 'id');
create trigger user_group_members_changed after insert or delete on user_group_members
    for each row execute function tell_changed('group', 'group_id');
create trigger access_tokens_changed after insert or update or delete on access_tokens
    for each row execute function tell_changed('token', 'id');
create trigger join_tokens_changed after insert or update or delete on join_tokens
    for each row execute function tell_changed('join_token', 'id');
-- A name may be longer than what can be told.
create trigger templates_changed after insert or update or delete on templates
    for each row execute function tell_changed('template', 'workspace_id');
create trigger webhooks_changed after insert or update or delete on webhooks
    for each row execute function tell_changed('webhook', 'id');
create trigger webhook_deliveries_changed after insert or update of state, attempts on webhook_deliveries
    for each row execute function tell_changed('delivery', 'webhook_id');
