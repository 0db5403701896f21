-- Webhooks of all workspaces may be told of rented machines.
alter table webhook_triggers drop constraint webhook_triggers_kind_check;
alter table webhook_triggers add constraint webhook_triggers_kind_check
    check (kind in ('EXPERIMENT_STATE_CHANGE', 'TASK_LOG', 'CUSTOM', 'MACHINE'));
alter table webhook_triggers add constraint a_machine_event check (kind <> 'MACHINE' or condition ? 'event');

-- What was said of budgets of machines, so that it is said once whichever master sees it.
create table budget_warnings (
    -- Empty: of all pools.
    pool text not null,
    -- The first day of the month, in UTC.
    month date not null,
    amount double precision not null,
    stage text not null check (stage in ('NEARLY', 'USED_UP')),
    warned_at timestamptz not null default now(),
    primary key (pool, month, amount, stage)
);

-- Places of providers that do not answer, since when.
create table silent_providers (
    provider text not null,
    region text not null,
    -- Of its API; empty: the usual one.
    endpoint text not null,
    since timestamptz not null default now(),
    reason text not null,
    primary key (provider, region, endpoint)
);
