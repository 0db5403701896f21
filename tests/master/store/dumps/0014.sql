-- A filled database as migrations 0001 to 0014 left it, before they became the files of the first release: a row or more in
-- every table, written by the master's own loops and routes. Users admin, determined and eve have the password
-- Kn0wn-Secret-Words. Made by pg_dump; never edited.

SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;

CREATE FUNCTION public.tell_credential_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform pg_notify('tenax', 'credential:' || tg_argv[0] || ':' || (to_jsonb(old) ->> tg_argv[1]));
    return null;
end $$;

CREATE FUNCTION public.tenax_add_month(parent text, month integer) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    part text := format('%s_%s', parent, month);
begin
    if tenax_has_part(parent, part) then
        return;
    end if;
    perform pg_advisory_xact_lock(hashtextextended('tenax_add_month', 0));
    if not tenax_has_part(parent, part) then
        -- Rows come and go all the time: swept early, so that room is used again.
        execute format(
            'create table %I partition of %I for values from (%s) to (%s) with (autovacuum_vacuum_scale_factor = 0.05)',
            part, parent, month, month + 1);
    end if;
end
$$;

CREATE FUNCTION public.tenax_compact(value jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
begin
    return case jsonb_typeof(value)
        when 'array' then (
            select '[' || coalesce(string_agg(tenax_compact(e.value), ',' order by e.ordinality), '') || ']'
            from jsonb_array_elements(value) with ordinality e)
        when 'object' then (
            select '{' || coalesce(string_agg(to_json(e.key)::text || ':' || tenax_compact(e.value), ','), '') || '}'
            from jsonb_each(value) e)
        else value::text end;
end
$$;

CREATE FUNCTION public.tenax_count_experiment() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if tg_op <> 'INSERT' then
        insert into experiment_counts values (old.project_id, old.owner_id, old.state, old.archived, -1);
    end if;
    if tg_op <> 'DELETE' then
        insert into experiment_counts values (new.project_id, new.owner_id, new.state, new.archived, 1);
    end if;
    return null;
end $$;

CREATE FUNCTION public.tenax_has_part(parent text, part text) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
begin
    return exists (
        select 1 from pg_catalog.pg_class c
        join pg_catalog.pg_class p on p.relnamespace = c.relnamespace
        where c.relname = part and p.oid = parent::regclass);
end
$$;

CREATE FUNCTION public.tenax_index_hparams() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if tg_op = 'UPDATE' then
        delete from run_hparams where trial_id = new.id;
    end if;
    insert into run_hparams (trial_id, key, alias, number_value, boolean_value, text_value)
    select new.id, l.key, l.alias, tenax_number(l.value),
           case when jsonb_typeof(l.value) = 'boolean' then l.value::boolean end,
           case when jsonb_typeof(l.value) = 'boolean' or tenax_number(l.value) is not null then null
                when jsonb_typeof(l.value) = 'string' then l.value #>> '{}' else tenax_compact(l.value) end
    from tenax_leaves(new.hparams) l
    -- The key of an index has room for so much.
    where length(l.key) <= 500
    on conflict do nothing;
    return null;
end
$$;

CREATE FUNCTION public.tenax_leaves(doc jsonb) RETURNS TABLE(key text, alias text, value jsonb)
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    with recursive walk (key, name, alias, depth, value) as (
        select e.key, e.key, null::text, 1, e.value
        from jsonb_each(case when jsonb_typeof(doc) = 'object' then doc else '{}' end) e
        union all
        select w.key || '.' || e.key, e.key, case when w.depth >= 2 then w.name || '.' || e.key end, w.depth + 1, e.value
        from walk w, jsonb_each(case when jsonb_typeof(w.value) = 'object' then w.value else '{}' end) e
    )
    select w.key, w.alias, w.value from walk w where jsonb_typeof(w.value) <> 'object' or w.value = '{}'
$$;

CREATE FUNCTION public.tenax_metric(trial bigint, grp text, metric text, qualifier text) RETURNS jsonb
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    select nullif(case
        when qualifier = 'last' then m -> 1
        when m ->> 0 <> 'number' then null
        when qualifier = 'min' then m -> 4
        when qualifier = 'max' then m -> 5
        when qualifier = 'mean' and (m ->> 2)::bigint > 0 and jsonb_typeof(m -> 3) = 'number'
            then to_jsonb((m ->> 3)::double precision / (m ->> 2)::bigint)
        when qualifier = 'mean' then m -> 3 end, 'null')
    from metric_groups g, lateral (select convert_from(g.summary, 'UTF8')::jsonb -> metric as m) s
    where g.trial_id = trial and g.grp = tenax_metric.grp
$$;

CREATE FUNCTION public.tenax_number(value jsonb) RETURNS double precision
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    select case
        when jsonb_typeof(value) = 'number' and abs(value::numeric) < 1e308 then value::double precision
        when value in ('"NaN"', '"Infinity"', '"-Infinity"') then (value #>> '{}')::double precision end
$$;

CREATE FUNCTION public.tenax_number_run(trial bigint, project bigint) RETURNS void
    LANGUAGE sql
    AS $$
    with counted as (
        insert into project_counters as c (project_id, last_run) values (project, 1)
        on conflict (project_id) do update set last_run = c.last_run + 1
        returning last_run
    )
    insert into run_numbers (trial_id, project_id, local_id) select trial, project, last_run from counted
    on conflict (trial_id) do update set project_id = excluded.project_id, local_id = excluded.local_id
$$;

CREATE FUNCTION public.tenax_rank(metric double precision, smaller_is_better boolean) RETURNS double precision[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    select array[(metric in ('NaN', 'Infinity', '-Infinity'))::int::double precision,
                 case when smaller_is_better then metric else - metric end]
$$;

CREATE FUNCTION public.tenax_run_made() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform tenax_number_run(t.id, e.project_id)
    from trials t join experiments e on e.id = t.experiment_id where t.id = new.id;
    return null;
end
$$;

CREATE FUNCTION public.tenax_runs_moved() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    perform tenax_number_run(t.id, t.project_id)
    from (select t.id, e.project_id from trials t join experiments e on e.id = t.experiment_id
          where e.id = new.id order by t.id) t;
    return null;
end
$$;

CREATE FUNCTION public.tenax_tally(ids bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    chosen bigint[];
begin
    -- Locked first: what others committed meanwhile is seen by the next statement.
    select array_agg(l.experiment_id) into chosen
    from (select y.experiment_id from experiment_tallies y
          where y.experiment_id = any(coalesce(ids, (select array_agg(o.experiment_id) from experiment_tallies o)))
          order by y.experiment_id for update) l;
    if chosen is null then
        -- They went with their experiment.
        return;
    end if;
    update experiment_tallies y
    set trials = c.trials, trials_ended = c.ended, checkpoints = c.checkpoints, checkpoint_bytes = c.bytes,
        best_trial_id = c.best_trial_id, best_metric = c.best_metric
    from (
        select o.experiment_id, count(t.id)::int as trials, count(t.id) filter (where t.state <> 'ACTIVE')::int as ended,
               coalesce(sum(k.checkpoints), 0)::int as checkpoints, coalesce(sum(k.bytes), 0)::bigint as bytes,
               (array_agg(t.id order by tenax_rank(m.best_metric, o.smaller_is_better), t.id)
                   filter (where m.best_metric is not null))[1] as best_trial_id,
               (array_agg(m.best_metric order by tenax_rank(m.best_metric, o.smaller_is_better), t.id)
                   filter (where m.best_metric is not null))[1] as best_metric
        from experiment_tallies o
        left join trials t on t.experiment_id = o.experiment_id
        left join trial_telemetry m on m.trial_id = t.id
        left join lateral (
            select count(*) as checkpoints, sum(x.size_bytes) as bytes
            from checkpoints x
            where x.trial_id = t.id and x.state in ('COMPLETED', 'PARTIALLY_DELETED')) k on true
        where o.experiment_id = any(chosen)
        group by o.experiment_id) c
    where y.experiment_id = c.experiment_id;
end $$;

CREATE FUNCTION public.tenax_tally_begin() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    searcher jsonb := new.config -> 'searcher';
begin
    insert into experiment_tallies (experiment_id, smaller_is_better, expected_trials, pool)
    select e.id, coalesce(searcher -> 'smaller_is_better' <> 'false', true),
           case when searcher ->> 'name' = 'single' then 1
                when jsonb_typeof(searcher -> 'max_trials') = 'number' then (searcher ->> 'max_trials')::numeric::int end,
           j.pool
    from experiments e join jobs j on j.job_id = e.job_id
    where e.id = new.experiment_id;
    return null;
end $$;

CREATE FUNCTION public.tenax_tally_best() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    known experiment_tallies;
begin
    select y.* into known
    from experiment_tallies y join trials t on t.experiment_id = y.experiment_id
    where t.id = new.trial_id for no key update of y;
    if not found then
        return null;
    end if;
    if new.best_metric is not null and (known.best_metric is null
        or (tenax_rank(new.best_metric, known.smaller_is_better), new.trial_id)
           < (tenax_rank(known.best_metric, known.smaller_is_better), known.best_trial_id)) then
        update experiment_tallies set best_trial_id = new.trial_id, best_metric = new.best_metric
        where experiment_id = known.experiment_id;
    elsif known.best_trial_id = new.trial_id and new.best_metric is distinct from known.best_metric then
        -- The best is hidden by a newer run: another one is the best now.
        update experiment_tallies y set best_trial_id = b.trial_id, best_metric = b.best_metric
        from (select 1) one left join lateral (
            select m.trial_id, m.best_metric
            from trials t join trial_telemetry m on m.trial_id = t.id
            where t.experiment_id = known.experiment_id and m.best_metric is not null
            order by tenax_rank(m.best_metric, known.smaller_is_better), m.trial_id
            limit 1) b on true
        where y.experiment_id = known.experiment_id;
    end if;
    return null;
end $$;

CREATE FUNCTION public.tenax_tally_checkpoint() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    had boolean := tg_op <> 'INSERT' and old.state in ('COMPLETED', 'PARTIALLY_DELETED');
    has boolean := tg_op <> 'DELETE' and new.state in ('COMPLETED', 'PARTIALLY_DELETED');
    more integer := has::int - had::int;
    bytes bigint := case when has then new.size_bytes else 0 end - case when had then old.size_bytes else 0 end;
begin
    if more <> 0 or bytes <> 0 then
        -- Those that go with their trial are counted with it.
        update experiment_tallies y
        set checkpoints = y.checkpoints + more, checkpoint_bytes = y.checkpoint_bytes + bytes
        from trials t
        where t.id = case when tg_op = 'DELETE' then old.trial_id else new.trial_id end
          and y.experiment_id = t.experiment_id;
    end if;
    return null;
end $$;

CREATE FUNCTION public.tenax_tally_pool() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    update experiment_tallies y set pool = new.pool from experiments e
    where e.job_id = new.job_id and y.experiment_id = e.id;
    return null;
end $$;

CREATE FUNCTION public.tenax_tally_trial() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    if tg_op = 'DELETE' then
        perform tenax_tally(array[old.experiment_id]);
    elsif tg_op = 'INSERT' then
        update experiment_tallies
        set trials = trials + 1, trials_ended = trials_ended + (new.state <> 'ACTIVE')::int
        where experiment_id = new.experiment_id;
    else
        update experiment_tallies
        set trials_ended = trials_ended + (new.state <> 'ACTIVE')::int - (old.state <> 'ACTIVE')::int
        where experiment_id = new.experiment_id;
    end if;
    return null;
end $$;

CREATE FUNCTION public.tenax_time(value text) RETURNS timestamp with time zone
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    AS $$
begin
    return value::timestamptz;
exception when data_exception then
    return null;
end
$$;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE public.access_tokens (
    id bigint NOT NULL,
    user_id bigint NOT NULL,
    made_by bigint,
    token_hash bytea NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    CONSTRAINT access_tokens_token_hash_check CHECK ((octet_length(token_hash) = 32)),
    CONSTRAINT expires_later CHECK ((expires_at > created_at))
);

ALTER TABLE public.access_tokens ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.access_tokens_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.agent_presence (
    agent_id text NOT NULL,
    connected boolean DEFAULT false NOT NULL,
    last_seen_at timestamp with time zone DEFAULT now() NOT NULL,
    hostname text DEFAULT ''::text NOT NULL,
    address text DEFAULT ''::text NOT NULL,
    runtime text DEFAULT ''::text NOT NULL,
    agent_version text DEFAULT ''::text NOT NULL,
    foreign_containers jsonb DEFAULT '[]'::jsonb NOT NULL
);

CREATE TABLE public.agent_slots (
    agent_id text NOT NULL,
    slot_id integer NOT NULL,
    kind text NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    uuid text DEFAULT ''::text NOT NULL,
    enabled boolean DEFAULT true NOT NULL,
    present boolean DEFAULT true NOT NULL,
    draining boolean DEFAULT false NOT NULL,
    CONSTRAINT agent_slots_kind_check CHECK ((kind = ANY (ARRAY['cpu'::text, 'cuda'::text, 'rocm'::text]))),
    CONSTRAINT agent_slots_slot_id_check CHECK ((slot_id >= 0)),
    CONSTRAINT drained_when_off CHECK ((NOT (draining AND enabled)))
);

CREATE TABLE public.agents (
    agent_id text NOT NULL,
    pool text NOT NULL,
    credential_hash bytea NOT NULL,
    state text DEFAULT 'ENABLED'::text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    revision bigint DEFAULT 1 NOT NULL,
    session bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT agents_agent_id_check CHECK ((agent_id ~ '^[A-Za-z0-9._-]{1,128}$'::text)),
    CONSTRAINT agents_credential_hash_check CHECK ((octet_length(credential_hash) = 32)),
    CONSTRAINT agents_state_check CHECK ((state = ANY (ARRAY['ENABLED'::text, 'DRAINING'::text, 'DISABLED'::text])))
);

CREATE TABLE public.all_gathers (
    allocation_id text NOT NULL,
    request_uuid text NOT NULL,
    num_peers integer NOT NULL,
    data jsonb NOT NULL,
    arrived_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT all_gathers_num_peers_check CHECK ((num_peers > 0))
);

CREATE TABLE public.allocation_accelerators (
    container_id text NOT NULL,
    allocation_id text NOT NULL,
    data jsonb NOT NULL,
    reported_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.allocation_tokens (
    token_hash bytea NOT NULL,
    allocation_id text NOT NULL,
    user_id bigint NOT NULL,
    CONSTRAINT allocation_tokens_token_hash_check CHECK ((octet_length(token_hash) = 32))
);

CREATE TABLE public.allocation_waits (
    allocation_id text NOT NULL,
    reason text NOT NULL,
    since timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.allocations (
    allocation_id text NOT NULL,
    task_id text NOT NULL,
    run_id integer NOT NULL,
    state text DEFAULT 'PENDING'::text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    slots integer NOT NULL,
    preemptible boolean DEFAULT true NOT NULL,
    single_node boolean DEFAULT false NOT NULL,
    blocked_agents text[] DEFAULT '{}'::text[] NOT NULL,
    preemption text DEFAULT 'NONE'::text NOT NULL,
    preemption_reason text DEFAULT ''::text NOT NULL,
    preemption_deadline timestamp with time zone,
    ready_at timestamp with time zone,
    exit_reason text DEFAULT ''::text NOT NULL,
    requested_at timestamp with time zone DEFAULT now() NOT NULL,
    assigned_at timestamp with time zone,
    ended_at timestamp with time zone,
    waiting_since timestamp with time zone,
    proxy_address text DEFAULT ''::text NOT NULL,
    CONSTRAINT allocations_preemption_check CHECK ((preemption = ANY (ARRAY['NONE'::text, 'REQUESTED'::text, 'ACKNOWLEDGED'::text]))),
    CONSTRAINT allocations_run_id_check CHECK ((run_id > 0)),
    CONSTRAINT allocations_slots_check CHECK ((slots >= 0)),
    CONSTRAINT allocations_state_check CHECK ((state = ANY (ARRAY['PENDING'::text, 'ASSIGNED'::text, 'PULLING'::text, 'STARTING'::text, 'RUNNING'::text, 'TERMINATING'::text, 'TERMINATED'::text]))),
    CONSTRAINT deadline_when_asked CHECK (((preemption = 'ACKNOWLEDGED'::text) OR ((preemption_deadline IS NULL) = (preemption = 'NONE'::text)))),
    CONSTRAINT ended_when_terminated CHECK (((ended_at IS NOT NULL) = (state = 'TERMINATED'::text)))
);

CREATE TABLE public.checkpoint_uploads (
    uuid text NOT NULL,
    task_id text NOT NULL,
    allocation_id text NOT NULL,
    storage_id bigint NOT NULL,
    announced_at timestamp with time zone DEFAULT now() NOT NULL,
    collected_at timestamp with time zone
);

CREATE TABLE public.checkpoints (
    uuid text NOT NULL,
    task_id text NOT NULL,
    allocation_id text,
    trial_id bigint,
    run_id integer,
    storage_id bigint,
    state text NOT NULL,
    superseded boolean DEFAULT false NOT NULL,
    steps_completed bigint DEFAULT 0 NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    resources jsonb DEFAULT '{}'::jsonb NOT NULL,
    size_bytes bigint DEFAULT 0 NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    reported_at timestamp with time zone DEFAULT now() NOT NULL,
    doomed boolean DEFAULT false NOT NULL,
    CONSTRAINT checkpoints_state_check CHECK ((state = ANY (ARRAY['ACTIVE'::text, 'COMPLETED'::text, 'PARTIALLY_DELETED'::text, 'DELETED'::text, 'ERROR'::text])))
);

CREATE TABLE public.chores (
    name text NOT NULL,
    done_at timestamp with time zone NOT NULL
);

CREATE TABLE public.cluster (
    only_row boolean DEFAULT true NOT NULL,
    cluster_id uuid NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    secret bytea NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT cluster_only_row_check CHECK (only_row),
    CONSTRAINT cluster_secret_check CHECK ((octet_length(secret) = 32))
);

CREATE TABLE public.cluster_message (
    only_row boolean DEFAULT true NOT NULL,
    message text NOT NULL,
    starts_at timestamp with time zone NOT NULL,
    ends_at timestamp with time zone,
    set_by bigint,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT cluster_message_check CHECK ((ends_at > starts_at)),
    CONSTRAINT cluster_message_message_check CHECK (((char_length(message) >= 1) AND (char_length(message) <= 250))),
    CONSTRAINT cluster_message_only_row_check CHECK (only_row)
);

CREATE TABLE public.containers (
    container_id text NOT NULL,
    allocation_id text NOT NULL,
    rank integer NOT NULL,
    agent_id text NOT NULL,
    slots integer[] NOT NULL,
    state text DEFAULT 'ASSIGNED'::text NOT NULL,
    want text DEFAULT 'RUN'::text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    address text DEFAULT ''::text NOT NULL,
    exit jsonb,
    daemon boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    gone_at timestamp with time zone,
    CONSTRAINT containers_rank_check CHECK ((rank >= 0)),
    CONSTRAINT containers_state_check CHECK ((state = ANY (ARRAY['ASSIGNED'::text, 'PULLING'::text, 'STARTING'::text, 'RUNNING'::text, 'TERMINATED'::text]))),
    CONSTRAINT containers_want_check CHECK ((want = ANY (ARRAY['RUN'::text, 'KILL'::text, 'GONE'::text]))),
    CONSTRAINT ended_when_terminated CHECK (((ended_at IS NOT NULL) = (state = 'TERMINATED'::text))),
    CONSTRAINT exit_when_terminated CHECK (((exit IS NOT NULL) = (state = 'TERMINATED'::text)))
);

CREATE TABLE public.contexts (
    hash text NOT NULL,
    archive bytea NOT NULL,
    size_bytes bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT contexts_hash_check CHECK ((hash ~ '^[0-9a-f]{64}$'::text))
);
ALTER TABLE ONLY public.contexts ALTER COLUMN archive SET STORAGE EXTERNAL;

CREATE TABLE public.experiment_counts (
    project_id bigint NOT NULL,
    owner_id bigint NOT NULL,
    state text NOT NULL,
    archived boolean NOT NULL,
    change bigint NOT NULL
);

CREATE TABLE public.experiment_documents (
    experiment_id bigint NOT NULL,
    name text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    notes text DEFAULT ''::text NOT NULL,
    labels text[] DEFAULT '{}'::text[] NOT NULL,
    original_config text NOT NULL,
    config jsonb NOT NULL,
    seed bigint NOT NULL,
    context_hash text,
    notices text[] DEFAULT '{}'::text[] NOT NULL,
    log_retention_days smallint,
    name_key text GENERATED ALWAYS AS (lower("left"(name, 200))) STORED NOT NULL COLLATE pg_catalog."C",
    description_key text GENERATED ALWAYS AS (lower("left"(description, 200))) STORED NOT NULL COLLATE pg_catalog."C",
    CONSTRAINT experiment_documents_log_retention_days_check CHECK ((log_retention_days >= '-1'::integer))
);

CREATE TABLE public.experiment_tallies (
    experiment_id bigint NOT NULL,
    smaller_is_better boolean DEFAULT true NOT NULL,
    expected_trials integer,
    pool text DEFAULT ''::text NOT NULL,
    trials integer DEFAULT 0 NOT NULL,
    trials_ended integer DEFAULT 0 NOT NULL,
    checkpoints integer DEFAULT 0 NOT NULL,
    checkpoint_bytes bigint DEFAULT 0 NOT NULL,
    best_trial_id bigint,
    best_metric double precision,
    best_order double precision GENERATED ALWAYS AS (
CASE
    WHEN ((best_metric > '-Infinity'::double precision) AND (best_metric < 'Infinity'::double precision)) THEN best_metric
    ELSE NULL::double precision
END) STORED,
    CONSTRAINT experiment_tallies_check CHECK (((best_trial_id IS NULL) = (best_metric IS NULL))),
    CONSTRAINT experiment_tallies_check1 CHECK ((trials_ended <= trials))
)
WITH (fillfactor='70');

CREATE TABLE public.experiments (
    id bigint NOT NULL,
    job_id text NOT NULL,
    owner_id bigint NOT NULL,
    project_id bigint NOT NULL,
    parent_id bigint,
    state text DEFAULT 'PAUSED'::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    unmanaged boolean DEFAULT false NOT NULL,
    archived boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    external_id text,
    CONSTRAINT ended_when_terminal CHECK (((ended_at IS NOT NULL) = (state = ANY (ARRAY['COMPLETED'::text, 'CANCELED'::text, 'ERROR'::text, 'DELETING'::text, 'DELETE_FAILED'::text])))),
    CONSTRAINT experiments_state_check CHECK ((state = ANY (ARRAY['ACTIVE'::text, 'PAUSED'::text, 'STOPPING_COMPLETED'::text, 'STOPPING_CANCELED'::text, 'STOPPING_KILLED'::text, 'STOPPING_ERROR'::text, 'COMPLETED'::text, 'CANCELED'::text, 'ERROR'::text, 'DELETING'::text, 'DELETE_FAILED'::text])))
);

ALTER TABLE public.experiments ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.experiments_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.garbage_due (
    experiment_id bigint NOT NULL,
    stamp bigint DEFAULT 1 NOT NULL,
    asked boolean DEFAULT false NOT NULL
);

CREATE TABLE public.jobs (
    job_id text NOT NULL,
    pool text NOT NULL,
    priority integer NOT NULL,
    weight double precision DEFAULT 1 NOT NULL,
    max_slots integer,
    queue_position numeric NOT NULL,
    owner_id bigint NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    submitted_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT jobs_max_slots_check CHECK ((max_slots >= 0)),
    CONSTRAINT jobs_priority_check CHECK (((priority >= 1) AND (priority <= 99))),
    CONSTRAINT jobs_weight_check CHECK ((weight > (0)::double precision))
);

CREATE TABLE public.launched_tasks (
    task_id text NOT NULL,
    workspace_id bigint DEFAULT 1 NOT NULL,
    project_id bigint,
    parent_id text,
    forked_from text,
    description text DEFAULT ''::text NOT NULL,
    state text DEFAULT 'ACTIVE'::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    run_id integer DEFAULT 0 NOT NULL,
    pausable boolean DEFAULT false NOT NULL,
    context_hash text,
    ended_at timestamp with time zone,
    CONSTRAINT ended_when_terminal CHECK (((ended_at IS NOT NULL) = (state = ANY (ARRAY['COMPLETED'::text, 'CANCELED'::text, 'ERROR'::text])))),
    CONSTRAINT launched_tasks_run_id_check CHECK ((run_id >= 0)),
    CONSTRAINT launched_tasks_state_check CHECK ((state = ANY (ARRAY['ACTIVE'::text, 'STOPPING_PAUSED'::text, 'PAUSED'::text, 'STOPPING_CANCELED'::text, 'COMPLETED'::text, 'CANCELED'::text, 'ERROR'::text]))),
    CONSTRAINT not_its_own_parent CHECK ((parent_id <> task_id)),
    CONSTRAINT paused_if_pausable CHECK ((pausable OR (state <> ALL (ARRAY['STOPPING_PAUSED'::text, 'PAUSED'::text]))))
);

CREATE TABLE public.leases (
    loop text NOT NULL,
    epoch bigint NOT NULL,
    holder text NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT leases_epoch_check CHECK ((epoch > 0))
);

CREATE TABLE public.log_chunks (
    month integer NOT NULL,
    task_id text NOT NULL,
    first_line bigint NOT NULL,
    lines integer NOT NULL,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL,
    levels integer NOT NULL,
    origins jsonb NOT NULL,
    meta bytea NOT NULL,
    body bytea NOT NULL,
    CONSTRAINT log_chunks_lines_check CHECK ((lines > 0))
)
PARTITION BY RANGE (month);
ALTER TABLE ONLY public.log_chunks ALTER COLUMN meta SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.log_chunks ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE public.log_chunks_202611 (
    month integer CONSTRAINT log_chunks_month_not_null NOT NULL,
    task_id text CONSTRAINT log_chunks_task_id_not_null NOT NULL,
    first_line bigint CONSTRAINT log_chunks_first_line_not_null NOT NULL,
    lines integer CONSTRAINT log_chunks_lines_not_null NOT NULL,
    first_at timestamp with time zone CONSTRAINT log_chunks_first_at_not_null NOT NULL,
    last_at timestamp with time zone CONSTRAINT log_chunks_last_at_not_null NOT NULL,
    levels integer CONSTRAINT log_chunks_levels_not_null NOT NULL,
    origins jsonb CONSTRAINT log_chunks_origins_not_null NOT NULL,
    meta bytea CONSTRAINT log_chunks_meta_not_null NOT NULL,
    body bytea CONSTRAINT log_chunks_body_not_null NOT NULL,
    CONSTRAINT log_chunks_lines_check CHECK ((lines > 0))
)
WITH (autovacuum_vacuum_scale_factor='0.05');
ALTER TABLE ONLY public.log_chunks_202611 ALTER COLUMN meta SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.log_chunks_202611 ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE public.log_matches (
    trial_id bigint NOT NULL,
    policy text NOT NULL,
    action text NOT NULL,
    agent_id text DEFAULT ''::text NOT NULL,
    run_id integer NOT NULL,
    line text NOT NULL,
    matched_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT log_matches_action_check CHECK ((action = ANY (ARRAY['LABEL'::text, 'CANCEL_RETRIES'::text, 'EXCLUDE_NODE'::text])))
);

CREATE TABLE public.log_streams (
    container_id text NOT NULL,
    stream text NOT NULL,
    task_id text NOT NULL,
    next_offset bigint NOT NULL,
    carry bytea DEFAULT '\x'::bytea NOT NULL,
    CONSTRAINT log_streams_next_offset_check CHECK ((next_offset >= 0))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.05');

CREATE TABLE public.log_tasks (
    task_id text NOT NULL,
    month integer NOT NULL,
    next_line bigint DEFAULT 0 NOT NULL,
    joined_line bigint DEFAULT 0 NOT NULL,
    loose_chunks integer DEFAULT 0 NOT NULL
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.05');

CREATE TABLE public.metric_blocks (
    month integer NOT NULL,
    trial_id bigint NOT NULL,
    grp text NOT NULL,
    first_ord bigint NOT NULL,
    run_id integer NOT NULL,
    reports integer NOT NULL,
    first_step bigint NOT NULL,
    last_step bigint NOT NULL,
    steps bytea NOT NULL,
    times bytea NOT NULL,
    batches bytea,
    CONSTRAINT metric_blocks_reports_check CHECK ((reports > 0))
)
PARTITION BY RANGE (month);
ALTER TABLE ONLY public.metric_blocks ALTER COLUMN steps SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.metric_blocks ALTER COLUMN times SET STORAGE EXTERNAL;

CREATE TABLE public.metric_blocks_202611 (
    month integer CONSTRAINT metric_blocks_month_not_null NOT NULL,
    trial_id bigint CONSTRAINT metric_blocks_trial_id_not_null NOT NULL,
    grp text CONSTRAINT metric_blocks_grp_not_null NOT NULL,
    first_ord bigint CONSTRAINT metric_blocks_first_ord_not_null NOT NULL,
    run_id integer CONSTRAINT metric_blocks_run_id_not_null NOT NULL,
    reports integer CONSTRAINT metric_blocks_reports_not_null NOT NULL,
    first_step bigint CONSTRAINT metric_blocks_first_step_not_null NOT NULL,
    last_step bigint CONSTRAINT metric_blocks_last_step_not_null NOT NULL,
    steps bytea CONSTRAINT metric_blocks_steps_not_null NOT NULL,
    times bytea CONSTRAINT metric_blocks_times_not_null NOT NULL,
    batches bytea,
    CONSTRAINT metric_blocks_reports_check CHECK ((reports > 0))
)
WITH (autovacuum_vacuum_scale_factor='0.05');
ALTER TABLE ONLY public.metric_blocks_202611 ALTER COLUMN steps SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.metric_blocks_202611 ALTER COLUMN times SET STORAGE EXTERNAL;

CREATE TABLE public.metric_chunks (
    month integer NOT NULL,
    trial_id bigint NOT NULL,
    grp text NOT NULL,
    metric text NOT NULL,
    first_ord bigint NOT NULL,
    present bytea,
    data bytea NOT NULL
)
PARTITION BY RANGE (month);
ALTER TABLE ONLY public.metric_chunks ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE public.metric_chunks_202611 (
    month integer CONSTRAINT metric_chunks_month_not_null NOT NULL,
    trial_id bigint CONSTRAINT metric_chunks_trial_id_not_null NOT NULL,
    grp text CONSTRAINT metric_chunks_grp_not_null NOT NULL,
    metric text CONSTRAINT metric_chunks_metric_not_null NOT NULL,
    first_ord bigint CONSTRAINT metric_chunks_first_ord_not_null NOT NULL,
    present bytea,
    data bytea CONSTRAINT metric_chunks_data_not_null NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.05');
ALTER TABLE ONLY public.metric_chunks_202611 ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE public.metric_cuts (
    trial_id bigint NOT NULL,
    run_id integer NOT NULL,
    kind text NOT NULL,
    step bigint NOT NULL,
    CONSTRAINT metric_cuts_kind_check CHECK ((kind = ANY (ARRAY['training'::text, 'validation'::text, 'other'::text])))
);

CREATE TABLE public.metric_groups (
    trial_id bigint NOT NULL,
    grp text NOT NULL,
    month integer NOT NULL,
    run_id integer NOT NULL,
    last_step bigint NOT NULL,
    next_ord bigint NOT NULL,
    sealed_ord bigint DEFAULT 0 NOT NULL,
    newest_step bigint NOT NULL,
    summary bytea NOT NULL,
    reported_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT metric_groups_check CHECK ((sealed_ord <= next_ord)),
    CONSTRAINT metric_groups_grp_check CHECK ((grp <> ''::text))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.05');

CREATE TABLE public.metric_tail (
    month integer NOT NULL,
    trial_id bigint NOT NULL,
    grp text NOT NULL,
    first_ord bigint NOT NULL,
    run_id integer NOT NULL,
    steps bigint[] NOT NULL,
    times bigint[] NOT NULL,
    bodies bytea NOT NULL,
    batches bytea,
    CONSTRAINT metric_tail_check CHECK ((cardinality(steps) = cardinality(times)))
)
PARTITION BY RANGE (month);
ALTER TABLE ONLY public.metric_tail ALTER COLUMN bodies SET STORAGE EXTERNAL;

CREATE TABLE public.metric_tail_202611 (
    month integer CONSTRAINT metric_tail_month_not_null NOT NULL,
    trial_id bigint CONSTRAINT metric_tail_trial_id_not_null NOT NULL,
    grp text CONSTRAINT metric_tail_grp_not_null NOT NULL,
    first_ord bigint CONSTRAINT metric_tail_first_ord_not_null NOT NULL,
    run_id integer CONSTRAINT metric_tail_run_id_not_null NOT NULL,
    steps bigint[] CONSTRAINT metric_tail_steps_not_null NOT NULL,
    times bigint[] CONSTRAINT metric_tail_times_not_null NOT NULL,
    bodies bytea CONSTRAINT metric_tail_bodies_not_null NOT NULL,
    batches bytea,
    CONSTRAINT metric_tail_check CHECK ((cardinality(steps) = cardinality(times)))
)
WITH (autovacuum_vacuum_scale_factor='0.05');
ALTER TABLE ONLY public.metric_tail_202611 ALTER COLUMN bodies SET STORAGE EXTERNAL;

CREATE TABLE public.model_versions (
    id bigint NOT NULL,
    model_id bigint NOT NULL,
    version integer NOT NULL,
    checkpoint_uuid text NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    comment text DEFAULT ''::text NOT NULL,
    notes text DEFAULT ''::text NOT NULL,
    labels text[] DEFAULT '{}'::text[] NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    owner_id bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT model_versions_metadata_check CHECK ((jsonb_typeof(metadata) = 'object'::text)),
    CONSTRAINT model_versions_version_check CHECK ((version > 0))
);

ALTER TABLE public.model_versions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.model_versions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.models (
    id bigint NOT NULL,
    name text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    notes text DEFAULT ''::text NOT NULL,
    labels text[] DEFAULT '{}'::text[] NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    workspace_id bigint NOT NULL,
    owner_id bigint NOT NULL,
    archived boolean DEFAULT false NOT NULL,
    last_version integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT models_last_version_check CHECK ((last_version >= 0)),
    CONSTRAINT models_metadata_check CHECK ((jsonb_typeof(metadata) = 'object'::text)),
    CONSTRAINT models_name_check CHECK (((btrim(name) <> ''::text) AND (name !~ '/|  '::text) AND (name !~ '^[0-9]+$'::text)))
);

ALTER TABLE public.models ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.models_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.pool_bindings (
    pool text NOT NULL,
    workspace_id bigint NOT NULL,
    bound_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT pool_bindings_pool_check CHECK ((pool <> ''::text))
);

CREATE TABLE public.project_counters (
    project_id bigint NOT NULL,
    last_run bigint NOT NULL
);

CREATE TABLE public.projects (
    id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    name text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    owner_id bigint,
    immutable boolean DEFAULT false NOT NULL,
    archived boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    state text DEFAULT 'ACTIVE'::text NOT NULL,
    error_message text DEFAULT ''::text NOT NULL,
    key text DEFAULT upper(substr(md5((random())::text), 1, 5)) NOT NULL,
    notes jsonb DEFAULT '[]'::jsonb NOT NULL,
    CONSTRAINT immutable_stays CHECK (((NOT immutable) OR ((state = 'ACTIVE'::text) AND (NOT archived)))),
    CONSTRAINT key_is_short CHECK ((key ~ '^[A-Z0-9]{1,5}$'::text)),
    CONSTRAINT projects_notes_check CHECK ((jsonb_typeof(notes) = 'array'::text)),
    CONSTRAINT projects_state_check CHECK ((state = ANY (ARRAY['ACTIVE'::text, 'DELETING'::text, 'DELETE_FAILED'::text])))
);

ALTER TABLE public.projects ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.projects_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.removals (
    uuid text NOT NULL,
    checkpoint text,
    upload text,
    globs text[] DEFAULT '{**/*}'::text[] NOT NULL,
    reason text NOT NULL,
    asked_at timestamp with time zone DEFAULT now() NOT NULL,
    begun_at timestamp with time zone,
    tries integer DEFAULT 0 NOT NULL,
    retry_at timestamp with time zone DEFAULT now() NOT NULL,
    failure text DEFAULT ''::text NOT NULL,
    afar boolean DEFAULT false NOT NULL,
    task_id text,
    CONSTRAINT one_of_both CHECK (((num_nonnulls(checkpoint, upload) = 1) AND (uuid = COALESCE(checkpoint, upload)))),
    CONSTRAINT removals_globs_check CHECK ((cardinality(globs) > 0)),
    CONSTRAINT removals_tries_check CHECK ((tries >= 0))
);

CREATE TABLE public.removed_agents (
    agent_id text NOT NULL,
    revision bigint NOT NULL,
    removed_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.rendezvous_members (
    container_id text NOT NULL,
    allocation_id text NOT NULL,
    arrived_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.run_hparams (
    trial_id bigint NOT NULL,
    key text NOT NULL,
    alias text,
    number_value double precision,
    boolean_value boolean,
    text_value text,
    CONSTRAINT run_hparams_check CHECK ((num_nonnulls(number_value, boolean_value, text_value) = 1))
);

CREATE TABLE public.run_metadata (
    trial_id bigint NOT NULL,
    metadata jsonb NOT NULL,
    modified_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT run_metadata_metadata_check CHECK ((jsonb_typeof(metadata) = 'object'::text))
);

CREATE TABLE public.run_metadata_index (
    id bigint NOT NULL,
    trial_id bigint NOT NULL,
    flat_key text NOT NULL,
    is_array_element boolean NOT NULL,
    integer_value bigint,
    float_value double precision,
    boolean_value boolean,
    string_value text,
    timestamp_value timestamp with time zone,
    CONSTRAINT run_metadata_index_check CHECK ((num_nonnulls(integer_value, float_value, boolean_value, string_value, timestamp_value) <= 1))
);

ALTER TABLE public.run_metadata_index ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.run_metadata_index_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.run_numbers (
    trial_id bigint NOT NULL,
    project_id bigint NOT NULL,
    local_id bigint NOT NULL
);

CREATE TABLE public.schema_migrations (
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.search_inbox (
    id bigint NOT NULL,
    experiment_id bigint NOT NULL,
    trial_id bigint NOT NULL,
    kind text NOT NULL,
    at_key bigint NOT NULL,
    fact jsonb NOT NULL,
    seq bigint,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT search_inbox_kind_check CHECK ((kind = ANY (ARRAY['validation'::text, 'exit'::text])))
);

ALTER TABLE public.search_inbox ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.search_inbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.search_journal (
    experiment_id bigint NOT NULL,
    seq bigint NOT NULL,
    entry jsonb NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT search_journal_entry_check CHECK ((entry ? 'v'::text)),
    CONSTRAINT search_journal_seq_check CHECK ((seq > 0))
);

CREATE TABLE public.slots_in_use (
    agent_id text NOT NULL,
    slot_id integer NOT NULL,
    container_id text NOT NULL
);

CREATE TABLE public.spool_refusals (
    container_id text NOT NULL,
    stream text NOT NULL,
    n bigint NOT NULL,
    message text NOT NULL,
    fatal boolean NOT NULL
);

CREATE TABLE public.spool_streams (
    container_id text NOT NULL,
    stream text NOT NULL,
    allocation_id text NOT NULL,
    acked bigint NOT NULL,
    CONSTRAINT spool_streams_acked_check CHECK ((acked >= 0))
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0.05');

CREATE TABLE public.storage_backends (
    id bigint NOT NULL,
    config jsonb NOT NULL
);

ALTER TABLE public.storage_backends ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.storage_backends_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.tasks (
    task_id text NOT NULL,
    kind text NOT NULL,
    job_id text NOT NULL,
    trial_id bigint,
    spec jsonb,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT tasks_kind_check CHECK ((kind = ANY (ARRAY['TRIAL'::text, 'NOTEBOOK'::text, 'SHELL'::text, 'COMMAND'::text, 'TENSORBOARD'::text, 'CHECKPOINT_GC'::text, 'GENERIC'::text])))
);

CREATE TABLE public.templates (
    name text NOT NULL,
    workspace_id bigint NOT NULL,
    owner_id bigint NOT NULL,
    config jsonb NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    modified_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT templates_config_check CHECK ((jsonb_typeof(config) = 'object'::text)),
    CONSTRAINT templates_name_check CHECK ((name <> ''::text))
);

CREATE TABLE public.trial_sources (
    trial_id bigint NOT NULL,
    checkpoint_uuid text NOT NULL,
    kind text NOT NULL,
    model_id bigint,
    model_version integer,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT trial_sources_check CHECK (((model_id IS NULL) = (model_version IS NULL))),
    CONSTRAINT trial_sources_kind_check CHECK ((kind = ANY (ARRAY['INFERENCE'::text, 'FINE_TUNING'::text])))
);

CREATE TABLE public.trial_telemetry (
    trial_id bigint NOT NULL,
    progress double precision,
    runner_state text DEFAULT ''::text NOT NULL,
    latest_validation jsonb,
    best_validation jsonb,
    best_metric double precision,
    reported_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT trial_telemetry_progress_check CHECK (((progress >= (0)::double precision) AND (progress <= (1)::double precision)))
)
WITH (fillfactor='50');

CREATE TABLE public.trials (
    id bigint NOT NULL,
    experiment_id bigint NOT NULL,
    request_id text NOT NULL,
    journal_seq bigint NOT NULL,
    task_id text NOT NULL,
    state text DEFAULT 'ACTIVE'::text NOT NULL,
    wish text DEFAULT 'RUN'::text NOT NULL,
    wish_reason text DEFAULT ''::text NOT NULL,
    reason text DEFAULT ''::text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    run_id integer DEFAULT 0 NOT NULL,
    restarts integer DEFAULT 0 NOT NULL,
    setbacks integer DEFAULT 0 NOT NULL,
    held_until timestamp with time zone,
    invalid_hp boolean DEFAULT false NOT NULL,
    fatal text,
    hparams jsonb NOT NULL,
    seed bigint NOT NULL,
    warm_start_checkpoint text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    log_retention_days smallint,
    archived boolean DEFAULT false NOT NULL,
    external_id text,
    CONSTRAINT ended_when_terminal CHECK (((ended_at IS NOT NULL) = (state <> 'ACTIVE'::text))),
    CONSTRAINT trials_log_retention_days_check CHECK ((log_retention_days >= '-1'::integer)),
    CONSTRAINT trials_restarts_check CHECK ((restarts >= 0)),
    CONSTRAINT trials_run_id_check CHECK ((run_id >= 0)),
    CONSTRAINT trials_setbacks_check CHECK ((setbacks >= 0)),
    CONSTRAINT trials_state_check CHECK ((state = ANY (ARRAY['ACTIVE'::text, 'COMPLETED'::text, 'CANCELED'::text, 'ERROR'::text]))),
    CONSTRAINT trials_wish_check CHECK ((wish = ANY (ARRAY['RUN'::text, 'STOP'::text, 'CANCEL'::text, 'KILL'::text])))
);

ALTER TABLE public.trials ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.trials_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.unmanaged_trials (
    trial_id bigint NOT NULL,
    heard_at timestamp with time zone DEFAULT now() NOT NULL,
    lost boolean DEFAULT false NOT NULL
);

CREATE TABLE public.usage (
    container_id text NOT NULL,
    allocation_id text NOT NULL,
    rank integer NOT NULL,
    task_id text NOT NULL,
    kind text NOT NULL,
    experiment_id bigint,
    user_id bigint NOT NULL,
    username text NOT NULL,
    workspace_id bigint,
    workspace_name text DEFAULT ''::text NOT NULL,
    labels text[] DEFAULT '{}'::text[] NOT NULL,
    pool text NOT NULL,
    agent_id text NOT NULL,
    slots integer NOT NULL,
    requested_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT usage_check CHECK ((ended_at >= started_at)),
    CONSTRAINT usage_rank_check CHECK ((rank >= 0)),
    CONSTRAINT usage_slots_check CHECK ((slots >= 0))
);

CREATE TABLE public.user_activity (
    user_id bigint NOT NULL,
    project_id bigint NOT NULL,
    at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.user_group_members (
    group_id bigint NOT NULL,
    user_id bigint NOT NULL
);

CREATE TABLE public.user_groups (
    id bigint NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT user_groups_name_check CHECK (((name <> ''::text) AND (length(name) <= 255)))
);

ALTER TABLE public.user_groups ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.user_groups_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.user_sessions (
    id bigint NOT NULL,
    user_id bigint NOT NULL,
    token_hash bytea NOT NULL,
    allocation_id text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT user_sessions_token_hash_check CHECK ((octet_length(token_hash) = 32))
);

ALTER TABLE public.user_sessions ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.user_sessions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.user_settings (
    user_id bigint NOT NULL,
    storage_path text NOT NULL,
    key text NOT NULL,
    value text NOT NULL,
    CONSTRAINT user_settings_key_check CHECK ((key <> ''::text))
);

CREATE TABLE public.users (
    id bigint NOT NULL,
    username text NOT NULL,
    display_name text DEFAULT ''::text NOT NULL,
    admin boolean DEFAULT false NOT NULL,
    active boolean DEFAULT true NOT NULL,
    remote boolean DEFAULT false NOT NULL,
    password_hash text,
    agent_uid integer,
    agent_gid integer,
    agent_user text,
    agent_group text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    modified_at timestamp with time zone DEFAULT now() NOT NULL,
    last_login_at timestamp with time zone,
    CONSTRAINT users_username_check CHECK ((username <> ''::text))
);

ALTER TABLE public.users ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.users_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.webhook_deliveries (
    id bigint NOT NULL,
    event_id uuid NOT NULL,
    webhook_id bigint NOT NULL,
    event jsonb NOT NULL,
    state text DEFAULT 'WAITING'::text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    outcome text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    next_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    CONSTRAINT ended_when_over CHECK (((ended_at IS NOT NULL) = (state <> 'WAITING'::text))),
    CONSTRAINT webhook_deliveries_attempts_check CHECK ((attempts >= 0)),
    CONSTRAINT webhook_deliveries_state_check CHECK ((state = ANY (ARRAY['WAITING'::text, 'DELIVERED'::text, 'FAILED'::text])))
);

ALTER TABLE public.webhook_deliveries ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.webhook_deliveries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.webhook_log_matches (
    task_id text NOT NULL,
    trigger_id bigint NOT NULL
);

CREATE TABLE public.webhook_triggers (
    id bigint NOT NULL,
    webhook_id bigint NOT NULL,
    kind text NOT NULL,
    condition jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT a_pattern CHECK (((kind <> 'TASK_LOG'::text) OR (condition ? 'regex'::text))),
    CONSTRAINT a_state CHECK (((kind <> 'EXPERIMENT_STATE_CHANGE'::text) OR (condition ? 'state'::text))),
    CONSTRAINT webhook_triggers_kind_check CHECK ((kind = ANY (ARRAY['EXPERIMENT_STATE_CHANGE'::text, 'TASK_LOG'::text, 'CUSTOM'::text])))
);

ALTER TABLE public.webhook_triggers ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.webhook_triggers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.webhooks (
    id bigint NOT NULL,
    name text NOT NULL,
    url text NOT NULL,
    kind text NOT NULL,
    mode text NOT NULL,
    workspace_id bigint,
    owner_id bigint,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT webhooks_kind_check CHECK ((kind = ANY (ARRAY['DEFAULT'::text, 'SLACK'::text]))),
    CONSTRAINT webhooks_mode_check CHECK ((mode = ANY (ARRAY['WORKSPACE'::text, 'SPECIFIC'::text]))),
    CONSTRAINT webhooks_name_check CHECK (((name <> ''::text) AND (length(name) <= 255)))
);

ALTER TABLE public.webhooks ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.webhooks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.workspace_pins (
    user_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    pinned_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE public.workspaces (
    id bigint NOT NULL,
    name text NOT NULL,
    owner_id bigint,
    immutable boolean DEFAULT false NOT NULL,
    archived boolean DEFAULT false NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    state text DEFAULT 'ACTIVE'::text NOT NULL,
    error_message text DEFAULT ''::text NOT NULL,
    agent_uid integer,
    agent_gid integer,
    agent_user text,
    agent_group text,
    checkpoint_storage jsonb,
    default_compute_pool text DEFAULT ''::text NOT NULL,
    default_aux_pool text DEFAULT ''::text NOT NULL,
    CONSTRAINT immutable_stays CHECK (((NOT immutable) OR ((state = 'ACTIVE'::text) AND (NOT archived)))),
    CONSTRAINT workspaces_agent_gid_check CHECK ((agent_gid >= 0)),
    CONSTRAINT workspaces_agent_uid_check CHECK ((agent_uid >= 0)),
    CONSTRAINT workspaces_state_check CHECK ((state = ANY (ARRAY['ACTIVE'::text, 'DELETING'::text, 'DELETE_FAILED'::text])))
);

ALTER TABLE public.workspaces ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.workspaces_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE ONLY public.log_chunks ATTACH PARTITION public.log_chunks_202611 FOR VALUES FROM (202611) TO (202612);

ALTER TABLE ONLY public.metric_blocks ATTACH PARTITION public.metric_blocks_202611 FOR VALUES FROM (202611) TO (202612);

ALTER TABLE ONLY public.metric_chunks ATTACH PARTITION public.metric_chunks_202611 FOR VALUES FROM (202611) TO (202612);

ALTER TABLE ONLY public.metric_tail ATTACH PARTITION public.metric_tail_202611 FOR VALUES FROM (202611) TO (202612);

INSERT INTO public.access_tokens VALUES
	(1, 2, 2, '\x69255ad6cd0c094d85e1132cc4ab0a3d4f3eaa7a5c06a19f1a034dc92808a5d8', '', '2026-11-22 11:20:55.561015+00', '2026-12-22 11:20:55.561015+00', NULL);

INSERT INTO public.agent_presence VALUES
	('two', false, '2026-11-22 11:20:55.077543+00', 'pretend', '10.0.0.2', 'process', 'test', '[]'),
	('a1', true, '2026-11-22 11:20:55.085549+00', 'a1.local', '10.0.0.1', 'process', '0.1.0', '[]');

INSERT INTO public.agent_slots VALUES
	('two', 0, 'cpu', 'pretended', '', true, true, false),
	('two', 1, 'cpu', 'pretended', '', true, true, false),
	('a1', 0, 'cpu', 'core 0', 'cpu-a1-0', true, true, false),
	('a1', 1, 'cpu', 'core 1', 'cpu-a1-1', true, true, false),
	('a1', 2, 'cpu', 'core 2', 'cpu-a1-2', true, true, false),
	('a1', 3, 'cpu', 'core 3', 'cpu-a1-3', true, true, false),
	('a1', 4, 'cpu', 'core 4', 'cpu-a1-4', true, true, false),
	('a1', 5, 'cpu', 'core 5', 'cpu-a1-5', true, true, false),
	('a1', 6, 'cpu', 'core 6', 'cpu-a1-6', true, true, false),
	('a1', 7, 'cpu', 'core 7', 'cpu-a1-7', false, true, true);

INSERT INTO public.agents VALUES
	('two', 'default', '\x7878787878787878787878787878787878787878787878787878787878787878', 'ENABLED', 1, 21, 1, '2026-11-22 11:20:50.407227+00'),
	('a1', 'default', '\xb01d0733739dfdca9dd4d49bfeb00c84c5172f36b1afc6a42cc3f87fa1171f40', 'ENABLED', 3, 3, 1, '2026-11-22 11:20:55.085549+00');

INSERT INTO public.all_gathers VALUES
	('2.00000000-0000-0000-0000-000000000001.1', '00000000-0000-0000-0000-000000000005', 1, '{"a": 1}', '2026-11-22 11:20:55.774837+00');

INSERT INTO public.allocation_accelerators VALUES
	('e045fd34-3f29-4f25-8a52-0b430645f2e1', '2.00000000-0000-0000-0000-000000000001.1', '{"node_name": "node1", "accelerator_type": "cpu", "accelerator_uuids": ["u1"]}', '2026-11-22 11:20:55.881463+00');

INSERT INTO public.allocation_tokens VALUES
	('\xdfd8cdc8d678994e384e69cbf2865e23c354d658abc5fde1bb6dc84f3170c76e', '1.19c2a8c7-f629-4851-8396-3b70d3d06cfa.1', 2),
	('\xfcc9709ce044072f0d85f2f04e9f98775d53a327c4bec8f7abe8cccff79e1234', '1.b9ecd94e-8edd-4a89-970a-8d43486e4980.1', 2),
	('\xddf14e5acba9b5a3f21d84174b7b9060f3edc2f3417021da58b1aa2930d30a80', '85deac47-dc32-4c9d-bdf9-7908a333f9f0.1', 2),
	('\x1f767e0ac449866cbaf018200ec2fa638884b9e74998f3701b913d573ad17ef1', '1.da6ab844-88b3-4204-a74c-f87fe6971b87.1', 2),
	('\xbadd002bb283e1155a397bec6879f26b0511d2bbe35a9a9b472fb8422547fabd', '728809f3-c264-4759-aec9-aac1d542b18c.1', 2),
	('\xe5b72052c89b779d1a4d96b5650b3519532e7fa7a5c5bc7d27c6576b6349aee9', '1.87e1b154-ac5b-4561-80de-97644b34e110.1', 2),
	('\x1c8c228c85e209ede0df524f59655a43be5678ef8d41fd98af45816fa20b459a', '1.131fdbe8-bc0d-4cb1-ac6c-a036bfae9158.1', 2),
	('\x3fb9e2d4e1d9c6e6b332a4a097aef435fb0fac910e6ce0b50d5de16e4fbd3036', '1.b7b03843-b5cb-4f06-b0fc-31c0fb92bd99.1', 2),
	('\x815f4f619151ccb554aa92c99467e285461a8532d01280e9f5700b95556088b0', '08cca5f4-e063-4c73-86f7-23b5d71d0bed.1', 2),
	('\x76407631098586808252a1ac74f95297a7ae51132c4671275f186d6982a60f27', '1c4cf360-25fd-480b-8c17-333dda853539.1', 2),
	('\x951befcd10d811e950411da3fb2b225cd51adc71894b6679287bc36897bb97f9', '2.00000000-0000-0000-0000-000000000001.1', 2),
	('\xa40d9121c961559f8de0e89d570a9adbaafaa89174755b208a8fbf1499653c5e', '3.00000000-0000-0000-0000-000000000001.1', 3),
	('\xe69221778ff689f4e003c86e2e1ea0658c984085b94c8c88257edc991946b33e', '4.00000000-0000-0000-0000-000000000001.1', 1);

INSERT INTO public.allocation_waits VALUES
	('2.00000000-0000-0000-0000-000000000032.1', 'no agent has 4 free slots', '2026-11-22 11:20:55.959106+00');

INSERT INTO public.allocations VALUES
	('1.b9ecd94e-8edd-4a89-970a-8d43486e4980.1', '1.b9ecd94e-8edd-4a89-970a-8d43486e4980', 1, 'TERMINATED', 6, 1, true, false, '{}', 'REQUESTED', 'done: it reached the top, rung 2 of 2 (16 epochs), and ranks 1 of 1 there', '2026-11-22 12:20:51.632442+00', '2026-11-22 11:20:50.929916+00', '', '2026-11-22 11:20:50.810624+00', '2026-11-22 11:20:50.836712+00', '2026-11-22 11:20:51.639858+00', NULL, ''),
	('1.19c2a8c7-f629-4851-8396-3b70d3d06cfa.1', '1.19c2a8c7-f629-4851-8396-3b70d3d06cfa', 1, 'TERMINATED', 6, 1, true, false, '{}', 'REQUESTED', 'done: it reached the top, rung 2 of 2 (16 epochs), and ranks 1 of 2 there', '2026-11-22 12:20:51.632442+00', '2026-11-22 11:20:50.945301+00', '', '2026-11-22 11:20:50.809687+00', '2026-11-22 11:20:50.817922+00', '2026-11-22 11:20:51.756401+00', NULL, ''),
	('85deac47-dc32-4c9d-bdf9-7908a333f9f0.1', '85deac47-dc32-4c9d-bdf9-7908a333f9f0', 1, 'TERMINATED', 5, 0, false, true, '{}', 'NONE', '', NULL, '2026-11-22 11:20:51.928298+00', 'it ended with exit code 1', '2026-11-22 11:20:51.712488+00', '2026-11-22 11:20:51.725151+00', '2026-11-22 11:20:51.950527+00', NULL, ''),
	('728809f3-c264-4759-aec9-aac1d542b18c.1', '728809f3-c264-4759-aec9-aac1d542b18c', 1, 'TERMINATED', 5, 0, false, true, '{}', 'NONE', '', NULL, '2026-11-22 11:20:52.181222+00', 'it ended with exit code 1', '2026-11-22 11:20:51.977559+00', '2026-11-22 11:20:51.990493+00', '2026-11-22 11:20:52.183106+00', NULL, ''),
	('1c4cf360-25fd-480b-8c17-333dda853539.1', '1c4cf360-25fd-480b-8c17-333dda853539', 1, 'TERMINATED', 5, 0, false, true, '{}', 'NONE', '', NULL, '2026-11-22 11:20:54.188615+00', 'it ended with exit code 1', '2026-11-22 11:20:54.110782+00', '2026-11-22 11:20:54.113244+00', '2026-11-22 11:20:54.192626+00', NULL, ''),
	('1.87e1b154-ac5b-4561-80de-97644b34e110.1', '1.87e1b154-ac5b-4561-80de-97644b34e110', 1, 'TERMINATED', 7, 1, true, false, '{}', 'ACKNOWLEDGED', 'stopped early: it ranks 3 of 3 at rung 1 of 2 (4 epochs), where the best 1 went on', '2026-11-22 12:20:52.377353+00', '2026-11-22 11:20:52.27232+00', '', '2026-11-22 11:20:51.663447+00', '2026-11-22 11:20:52.048589+00', '2026-11-22 11:20:52.413035+00', NULL, ''),
	('1.131fdbe8-bc0d-4cb1-ac6c-a036bfae9158.1', '1.131fdbe8-bc0d-4cb1-ac6c-a036bfae9158', 1, 'TERMINATED', 7, 1, true, false, '{}', 'ACKNOWLEDGED', 'stopped early: it ranks 2 of 4 at rung 1 of 2 (4 epochs), where the best 1 went on', '2026-11-22 12:20:52.670882+00', '2026-11-22 11:20:52.52879+00', '', '2026-11-22 11:20:51.668392+00', '2026-11-22 11:20:52.491775+00', '2026-11-22 11:20:52.723418+00', NULL, ''),
	('1.da6ab844-88b3-4204-a74c-f87fe6971b87.1', '1.da6ab844-88b3-4204-a74c-f87fe6971b87', 1, 'TERMINATED', 5, 1, true, false, '{}', 'NONE', '', NULL, '2026-11-22 11:20:52.056489+00', '', '2026-11-22 11:20:50.81116+00', '2026-11-22 11:20:51.870641+00', '2026-11-22 11:20:52.814345+00', NULL, ''),
	('08cca5f4-e063-4c73-86f7-23b5d71d0bed.1', '08cca5f4-e063-4c73-86f7-23b5d71d0bed', 1, 'TERMINATED', 5, 0, false, true, '{}', 'NONE', '', NULL, '2026-11-22 11:20:53.019183+00', 'it ended with exit code 1', '2026-11-22 11:20:52.954097+00', '2026-11-22 11:20:52.977329+00', '2026-11-22 11:20:53.392814+00', NULL, ''),
	('1.b7b03843-b5cb-4f06-b0fc-31c0fb92bd99.1', '1.b7b03843-b5cb-4f06-b0fc-31c0fb92bd99', 1, 'TERMINATED', 7, 1, true, false, '{}', 'ACKNOWLEDGED', 'done: it reached the top, rung 1 of 1 (16 epochs), and ranks 2 of 2 there', '2026-11-22 12:20:53.976237+00', '2026-11-22 11:20:52.953522+00', '', '2026-11-22 11:20:52.892674+00', '2026-11-22 11:20:52.906617+00', '2026-11-22 11:20:54.007739+00', NULL, ''),
	('3.00000000-0000-0000-0000-000000000001.1', '3.00000000-0000-0000-0000-000000000001', 1, 'TERMINATED', 2, 1, true, false, '{}', 'NONE', '', NULL, NULL, '', '2026-11-22 11:20:55.163887+00', '2026-11-22 11:20:55.160627+00', '2026-11-22 11:20:55.704495+00', NULL, ''),
	('2.00000000-0000-0000-0000-000000000001.1', '2.00000000-0000-0000-0000-000000000001', 1, 'RUNNING', 4, 1, true, false, '{}', 'REQUESTED', 'agent a1 was disabled', '2026-11-22 11:20:55.821608+00', '2026-11-22 11:20:55.763832+00', '', '2026-11-22 11:20:55.120296+00', '2026-11-22 11:20:55.114203+00', NULL, NULL, ''),
	('3.00000000-0000-0000-0000-000000000001.2', '3.00000000-0000-0000-0000-000000000001', 2, 'RUNNING', 2, 1, true, false, '{}', 'REQUESTED', 'agent a1 was disabled', '2026-11-22 11:20:55.821608+00', NULL, '', '2026-11-22 11:20:55.704495+00', NULL, NULL, NULL, ''),
	('4.00000000-0000-0000-0000-000000000001.1', '4.00000000-0000-0000-0000-000000000001', 1, 'RUNNING', 3, 1, true, false, '{}', 'REQUESTED', 'agent a1 was disabled', '2026-11-22 11:20:55.821608+00', NULL, '', '2026-11-22 11:20:55.193191+00', '2026-11-22 11:20:55.191223+00', NULL, NULL, ''),
	('2.00000000-0000-0000-0000-000000000032.1', '2.00000000-0000-0000-0000-000000000032', 1, 'PENDING', 1, 4, true, false, '{}', 'NONE', '', NULL, NULL, '', '2026-11-22 11:20:55.966135+00', NULL, NULL, NULL, '');

INSERT INTO public.checkpoint_uploads VALUES
	('00000000-0000-0000-0000-00000000004d', '2.00000000-0000-0000-0000-000000000001', '2.00000000-0000-0000-0000-000000000001.1', 1, '2026-11-22 11:20:55.959106+00', NULL);

INSERT INTO public.checkpoints VALUES
	('ef013343-5bad-4b6a-8ed6-e25685725a21', '1.b9ecd94e-8edd-4a89-970a-8d43486e4980', '1.b9ecd94e-8edd-4a89-970a-8d43486e4980.1', 2, 1, 1, 'COMPLETED', false, 16, '{"steps_completed": 16}', '{"d/": 0, "w.bin": 4}', 4, 1, '2026-11-22 11:20:51.610515+00', false),
	('51e6a6b8-d3ed-465d-a4e6-591c930693d3', '1.19c2a8c7-f629-4851-8396-3b70d3d06cfa', '1.19c2a8c7-f629-4851-8396-3b70d3d06cfa.1', 1, 1, 1, 'COMPLETED', false, 16, '{"steps_completed": 16}', '{"d/": 0, "w.bin": 4}', 4, 1, '2026-11-22 11:20:51.626884+00', false),
	('b7d61129-515e-476f-9167-a6162eeb8227', '1.b9ecd94e-8edd-4a89-970a-8d43486e4980', '1.b9ecd94e-8edd-4a89-970a-8d43486e4980.1', 2, 1, 1, 'COMPLETED', false, 8, '{"steps_completed": 8}', '{"d/": 0, "w.bin": 4}', 4, 2, '2026-11-22 11:20:51.332966+00', true),
	('50e19c95-9e66-4246-bc95-732a6d9cfb6e', '1.19c2a8c7-f629-4851-8396-3b70d3d06cfa', '1.19c2a8c7-f629-4851-8396-3b70d3d06cfa.1', 1, 1, 1, 'COMPLETED', false, 8, '{"steps_completed": 8}', '{"d/": 0, "w.bin": 4}', 4, 2, '2026-11-22 11:20:51.344098+00', true),
	('eeb00444-4f9b-44b8-933b-804e66ec2b3f', '1.da6ab844-88b3-4204-a74c-f87fe6971b87', '1.da6ab844-88b3-4204-a74c-f87fe6971b87.1', 3, 1, 1, 'COMPLETED', false, 16, '{"steps_completed": 16}', '{"d/": 0, "w.bin": 4}', 4, 1, '2026-11-22 11:20:52.787247+00', false),
	('b884ddda-184b-4379-b090-efaf671c708c', '1.da6ab844-88b3-4204-a74c-f87fe6971b87', '1.da6ab844-88b3-4204-a74c-f87fe6971b87.1', 3, 1, 1, 'COMPLETED', false, 8, '{"steps_completed": 8}', '{"d/": 0, "w.bin": 4}', 4, 2, '2026-11-22 11:20:52.426883+00', true),
	('93c0df2e-c752-48dc-a9db-d9d03a9b9817', '1.b7b03843-b5cb-4f06-b0fc-31c0fb92bd99', '1.b7b03843-b5cb-4f06-b0fc-31c0fb92bd99.1', 6, 1, 1, 'COMPLETED', false, 16, '{"steps_completed": 16}', '{"d/": 0, "w.bin": 4}', 4, 1, '2026-11-22 11:20:53.974294+00', false),
	('6fcebd65-9f08-465c-9a74-49fa8f07c51f', '1.b7b03843-b5cb-4f06-b0fc-31c0fb92bd99', '1.b7b03843-b5cb-4f06-b0fc-31c0fb92bd99.1', 6, 1, 1, 'COMPLETED', false, 8, '{"steps_completed": 8}', '{"d/": 0, "w.bin": 4}', 4, 2, '2026-11-22 11:20:53.680741+00', true),
	('0d6e4079-4c8e-4f5f-9a39-2f4e2b1c0001', '2.00000000-0000-0000-0000-000000000001', '2.00000000-0000-0000-0000-000000000001.1', 7, 1, NULL, 'COMPLETED', false, 1, '{"steps_completed": 1}', '{"w.bin": 4}', 4, 1, '2026-11-22 11:20:55.200821+00', false),
	('0d6e4079-4c8e-4f5f-9a39-2f4e2b1c0002', '2.00000000-0000-0000-0000-000000000001', '2.00000000-0000-0000-0000-000000000001.1', 7, 1, NULL, 'COMPLETED', false, 1, '{"steps_completed": 1}', '{"w.bin": 4}', 4, 1, '2026-11-22 11:20:55.203298+00', false),
	('00000000-0000-0000-0000-00000000004e', '2.00000000-0000-0000-0000-000000000001', '2.00000000-0000-0000-0000-000000000001.1', 7, 1, NULL, 'COMPLETED', false, 3, '{"steps_completed": 3}', '{"w.bin": 4}', 4, 1, '2026-11-22 11:20:55.902515+00', false);

INSERT INTO public.chores VALUES
	('log_retention', '2026-11-22 11:20:50.521898+00'),
	('retention', '2026-11-22 11:20:55.959106+00');

INSERT INTO public.cluster VALUES
	(true, 'f3fa5de4-b5a2-411f-8b1f-56f699c3aee4', 1, 'before', '\xf13d7d8950c1a232a501f381fecc8d19eb394d4abecffd4dc8d4cdf684365830', '2026-11-22 11:20:49.228185+00');

INSERT INTO public.cluster_message VALUES
	(true, 'Down at noon', '2026-01-02 03:04:05+00', '2036-01-02 03:04:05+00', 1, '2026-11-22 11:20:55.800868+00');

INSERT INTO public.containers VALUES
	('105a0aa6-bfc0-48fa-a79a-4243100da5c2', '1.131fdbe8-bc0d-4cb1-ac6c-a036bfae9158.1', 0, 'two', '{0}', 'TERMINATED', 'GONE', 5, '127.0.0.1', '{"v": 1, "code": 0, "asked": false, "reason": "", "signal": null, "platform": false}', false, '2026-11-22 11:20:52.491775+00', '2026-11-22 11:20:52.52879+00', '2026-11-22 11:20:52.723418+00', '2026-11-22 11:20:52.787201+00'),
	('00a56f91-28cf-4bd6-b2e1-39d4c62ea597', '1.da6ab844-88b3-4204-a74c-f87fe6971b87.1', 0, 'two', '{1}', 'TERMINATED', 'GONE', 5, '127.0.0.1', '{"v": 1, "code": 0, "asked": false, "reason": "", "signal": null, "platform": false}', false, '2026-11-22 11:20:51.870641+00', '2026-11-22 11:20:52.056489+00', '2026-11-22 11:20:52.814345+00', '2026-11-22 11:20:52.893175+00'),
	('340f4a88-f218-4fc0-a574-ed4ae78dc91c', '4.00000000-0000-0000-0000-000000000001.1', 0, 'a1', '{2}', 'RUNNING', 'RUN', 2, '10.0.0.1', NULL, false, '2026-11-22 11:20:55.191223+00', '2026-11-22 11:20:55.191223+00', NULL, NULL),
	('3.00000000-0000-0000-0000-000000000001.2', '3.00000000-0000-0000-0000-000000000001.2', 0, 'a1', '{}', 'RUNNING', 'RUN', 1, '', NULL, false, '2026-11-22 11:20:55.704495+00', NULL, NULL, NULL),
	('72984c8b-8698-4036-a04f-93c94a630501', '1.b9ecd94e-8edd-4a89-970a-8d43486e4980.1', 0, 'two', '{1}', 'TERMINATED', 'GONE', 5, '127.0.0.1', '{"v": 1, "code": 0, "asked": false, "reason": "", "signal": null, "platform": false}', false, '2026-11-22 11:20:50.836712+00', '2026-11-22 11:20:50.929916+00', '2026-11-22 11:20:51.639858+00', '2026-11-22 11:20:51.860666+00'),
	('be52d5fa-f7a9-4753-b7e9-932302c902d5', '1.19c2a8c7-f629-4851-8396-3b70d3d06cfa.1', 0, 'two', '{0}', 'TERMINATED', 'GONE', 5, '127.0.0.1', '{"v": 1, "code": 0, "asked": false, "reason": "", "signal": null, "platform": false}', false, '2026-11-22 11:20:50.817922+00', '2026-11-22 11:20:50.945301+00', '2026-11-22 11:20:51.756401+00', '2026-11-22 11:20:52.028556+00'),
	('ce4fd0d8-d75e-4732-8d3e-9c9a2a9927c2', '85deac47-dc32-4c9d-bdf9-7908a333f9f0.1', 0, 'two', '{}', 'TERMINATED', 'GONE', 5, '127.0.0.1', '{"v": 1, "code": 1, "asked": false, "reason": "it ended with exit code 1", "signal": null, "platform": false}', false, '2026-11-22 11:20:51.725151+00', '2026-11-22 11:20:51.928298+00', '2026-11-22 11:20:51.950527+00', '2026-11-22 11:20:52.077545+00'),
	('c619d17e-bd26-4208-8b4e-a4efa96015c2', '08cca5f4-e063-4c73-86f7-23b5d71d0bed.1', 0, 'two', '{}', 'TERMINATED', 'GONE', 5, '127.0.0.1', '{"v": 1, "code": 1, "asked": false, "reason": "it ended with exit code 1", "signal": null, "platform": false}', false, '2026-11-22 11:20:52.977329+00', '2026-11-22 11:20:53.019183+00', '2026-11-22 11:20:53.392814+00', '2026-11-22 11:20:53.464201+00'),
	('016210f1-b701-4c35-97d0-5c71a6521fb1', '1.b7b03843-b5cb-4f06-b0fc-31c0fb92bd99.1', 0, 'two', '{0}', 'TERMINATED', 'GONE', 5, '127.0.0.1', '{"v": 1, "code": 0, "asked": false, "reason": "", "signal": null, "platform": false}', false, '2026-11-22 11:20:52.906617+00', '2026-11-22 11:20:52.953522+00', '2026-11-22 11:20:54.007739+00', '2026-11-22 11:20:54.045638+00'),
	('46b27a08-899b-4401-8ada-0284f43f45ff', '728809f3-c264-4759-aec9-aac1d542b18c.1', 0, 'two', '{}', 'TERMINATED', 'GONE', 5, '127.0.0.1', '{"v": 1, "code": 1, "asked": false, "reason": "it ended with exit code 1", "signal": null, "platform": false}', false, '2026-11-22 11:20:51.990493+00', '2026-11-22 11:20:52.181222+00', '2026-11-22 11:20:52.183106+00', '2026-11-22 11:20:52.281878+00'),
	('b04c7c4c-62d3-40bb-8122-e6e478242025', '1.87e1b154-ac5b-4561-80de-97644b34e110.1', 0, 'two', '{0}', 'TERMINATED', 'GONE', 5, '127.0.0.1', '{"v": 1, "code": 0, "asked": false, "reason": "", "signal": null, "platform": false}', false, '2026-11-22 11:20:52.048589+00', '2026-11-22 11:20:52.27232+00', '2026-11-22 11:20:52.413035+00', '2026-11-22 11:20:52.46831+00'),
	('32806344-da1a-41c2-9b2b-a3dd72205080', '1c4cf360-25fd-480b-8c17-333dda853539.1', 0, 'two', '{}', 'TERMINATED', 'GONE', 5, '127.0.0.1', '{"v": 1, "code": 1, "asked": false, "reason": "it ended with exit code 1", "signal": null, "platform": false}', false, '2026-11-22 11:20:54.113244+00', '2026-11-22 11:20:54.188615+00', '2026-11-22 11:20:54.192626+00', '2026-11-22 11:20:54.204751+00'),
	('e045fd34-3f29-4f25-8a52-0b430645f2e1', '2.00000000-0000-0000-0000-000000000001.1', 0, 'a1', '{0}', 'RUNNING', 'RUN', 2, '10.0.0.1', NULL, false, '2026-11-22 11:20:55.114203+00', '2026-11-22 11:20:55.114203+00', NULL, NULL),
	('a9beb808-c78a-4996-a15f-94be7f0ad4d0', '3.00000000-0000-0000-0000-000000000001.1', 0, 'a1', '{1}', 'RUNNING', 'RUN', 2, '10.0.0.1', NULL, false, '2026-11-22 11:20:55.160627+00', '2026-11-22 11:20:55.160627+00', NULL, NULL);

INSERT INTO public.contexts VALUES
	('c6dace2fcf9e487b6b7b77e3bd8b68634728949c8b2b845d11f1a106dc6e1814', '\x1f8b0800000000000003edcd310a83401005508f629934b2268b9ec7d24664b316dedec54ad26c934008ef357f183e33394df3d2ad7bf345a118623cb378cf10facb7ceec7f878366da81dfe84ed95a7545ed67a7f6a4df3926ffdbdd6030000000000000000e0b71ce6124cc600280000', 8, '2026-11-22 11:20:50.672249+00');

INSERT INTO public.experiment_counts VALUES
	(1, 2, 'PAUSED', false, 1),
	(1, 2, 'PAUSED', false, -1),
	(1, 2, 'ACTIVE', false, 1),
	(1, 2, 'ACTIVE', false, -1),
	(1, 2, 'STOPPING_COMPLETED', false, 1),
	(1, 2, 'STOPPING_COMPLETED', false, -1),
	(1, 2, 'COMPLETED', false, 1),
	(1, 2, 'PAUSED', false, 1),
	(1, 2, 'PAUSED', false, -1),
	(1, 2, 'ACTIVE', false, 1),
	(1, 3, 'PAUSED', false, 1),
	(1, 3, 'PAUSED', false, -1),
	(1, 3, 'ACTIVE', false, 1),
	(1, 1, 'PAUSED', false, 1),
	(1, 1, 'PAUSED', false, -1),
	(1, 1, 'ACTIVE', false, 1),
	(2, 2, 'PAUSED', false, 1),
	(2, 2, 'PAUSED', false, -1),
	(2, 2, 'ACTIVE', false, 1),
	(2, 2, 'PAUSED', false, 1),
	(2, 2, 'PAUSED', false, -1),
	(2, 2, 'ACTIVE', false, 1),
	(2, 2, 'PAUSED', false, 1),
	(2, 2, 'PAUSED', false, -1),
	(2, 2, 'ACTIVE', false, 1),
	(2, 2, 'PAUSED', false, 1),
	(2, 2, 'PAUSED', false, -1),
	(2, 2, 'ACTIVE', false, 1),
	(2, 2, 'ACTIVE', false, -1),
	(2, 2, 'PAUSED', false, 1),
	(2, 2, 'ACTIVE', false, -1),
	(2, 2, 'CANCELED', false, 1),
	(2, 2, 'ACTIVE', false, -1),
	(2, 2, 'CANCELED', false, 1),
	(2, 2, 'ACTIVE', false, -1),
	(2, 2, 'CANCELED', false, 1),
	(2, 2, 'CANCELED', false, -1),
	(2, 2, 'CANCELED', true, 1),
	(1, 2, 'PAUSED', false, 1),
	(1, 2, 'PAUSED', false, -1),
	(1, 2, 'ACTIVE', false, 1);

INSERT INTO public.experiment_documents VALUES
	(1, 'search', '', '', '{}', '
name: search
entrypoint: python3 train.py
hyperparameters: {lr: {type: log, base: 10, minval: -4, maxval: -1}, net: {depth: 3, wide: true, name: small}}
searcher: {name: adaptive_asha, metric: loss, time_metric: epochs, max_time: 16, max_trials: 6, max_concurrent_trials: 3}
resources: {slots_per_trial: 1}
reproducibility: {experiment_seed: 7}
log_policies: [{name: oom, pattern: "out of memory", action: exclude_node}, {name: slow, pattern: "slow"}]
checkpoint_storage: {type: directory, container_path: /srv/more}
', '{"pbs": {"pbsbatch_args": null, "slots_per_node": null}, "data": {}, "name": "search", "debug": false, "slurm": {"gpu_type": null, "sbatch_args": null, "slots_per_node": null}, "labels": [], "project": "", "searcher": {"mode": "standard", "name": "adaptive_asha", "metric": "loss", "divisor": 4, "max_time": 16, "max_rungs": 5, "stop_once": null, "max_length": null, "max_trials": 6, "time_metric": "epochs", "bracket_rungs": [], "source_trial_id": null, "smaller_is_better": true, "max_concurrent_trials": 3, "source_checkpoint_uuid": null}, "profiling": {"enabled": false, "sync_timings": true, "begin_on_batch": 0, "end_after_batch": null}, "resources": {"weight": 1, "devices": [], "priority": 42, "shm_size": 4294967296, "max_slots": null, "resource_pool": "default", "is_single_node": null, "native_parallel": false, "slots_per_trial": 1}, "workspace": "", "entrypoint": "python3 train.py", "bind_mounts": [], "description": null, "environment": {"image": {"cpu": "determinedai/pytorch-ngc-dev:0736b6d", "cuda": "determinedai/pytorch-ngc-dev:0736b6d", "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"}, "ports": {}, "pod_spec": null, "proxy_ports": [], "registry_auth": null, "add_capabilities": [], "force_pull_image": false, "drop_capabilities": [], "environment_variables": {"cpu": [], "cuda": [], "rocm": []}}, "integrations": null, "log_policies": [{"name": "oom", "action": "exclude_node", "pattern": "out of memory"}, {"name": "slow", "action": null, "pattern": "slow"}, {"name": "CUDA OOM", "action": null, "pattern": ".*CUDA out of memory.*"}, {"name": "ECC Error", "action": null, "pattern": ".*uncorrectable ECC error encountered.*"}], "max_restarts": 5, "optimizations": {"mixed_precision": "O0", "gradient_compression": false, "aggregation_frequency": 1, "grad_updates_size_file": null, "auto_tune_tensor_fusion": false, "tensor_fusion_threshold": 64, "average_training_metrics": true, "tensor_fusion_cycle_time": 1, "average_aggregated_gradients": true}, "hyperparameters": {"lr": {"base": 10, "type": "log", "maxval": -1, "minval": -4}, "net": {"name": {"val": "small", "type": "const"}, "wide": {"val": true, "type": "const"}, "depth": {"val": 3, "type": "const"}}}, "reproducibility": {"experiment_seed": 7}, "scheduling_unit": 100, "retention_policy": null, "checkpoint_policy": "best", "records_per_epoch": 0, "checkpoint_storage": {"type": "directory", "container_path": "/srv/more", "save_trial_best": 1, "save_trial_latest": 1, "save_experiment_best": 0}, "preemption_timeout": null, "min_checkpoint_period": {"batches": 0}, "min_validation_period": {"batches": 0}, "perform_initial_validation": false}', 7, 'c6dace2fcf9e487b6b7b77e3bd8b68634728949c8b2b845d11f1a106dc6e1814', '{}', NULL, DEFAULT, DEFAULT),
	(2, 'digits', '', '', '{}', '
name: digits
entrypoint: python3 train.py
hyperparameters: {lr: {type: log, base: 10, minval: -4, maxval: -1}}
searcher: {name: random, metric: accuracy, smaller_is_better: false, max_trials: 8}
resources: {slots_per_trial: 1}
', '{"pbs": {"pbsbatch_args": null, "slots_per_node": null}, "data": {}, "name": "digits", "debug": false, "slurm": {"gpu_type": null, "sbatch_args": null, "slots_per_node": null}, "labels": [], "project": "", "searcher": {"name": "random", "metric": "accuracy", "max_length": null, "max_trials": 8, "source_trial_id": null, "smaller_is_better": false, "max_concurrent_trials": 16, "source_checkpoint_uuid": null}, "profiling": {"enabled": false, "sync_timings": true, "begin_on_batch": 0, "end_after_batch": null}, "resources": {"weight": 1, "devices": [], "priority": 42, "shm_size": 4294967296, "max_slots": null, "resource_pool": "default", "is_single_node": null, "native_parallel": false, "slots_per_trial": 1}, "workspace": "", "entrypoint": "python3 train.py", "bind_mounts": [], "description": null, "environment": {"image": {"cpu": "determinedai/pytorch-ngc-dev:0736b6d", "cuda": "determinedai/pytorch-ngc-dev:0736b6d", "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"}, "ports": {}, "pod_spec": null, "proxy_ports": [], "registry_auth": null, "add_capabilities": [], "force_pull_image": false, "drop_capabilities": [], "environment_variables": {"cpu": [], "cuda": [], "rocm": []}}, "integrations": null, "log_policies": [{"name": "CUDA OOM", "action": null, "pattern": ".*CUDA out of memory.*"}, {"name": "ECC Error", "action": null, "pattern": ".*uncorrectable ECC error encountered.*"}], "max_restarts": 5, "optimizations": {"mixed_precision": "O0", "gradient_compression": false, "aggregation_frequency": 1, "grad_updates_size_file": null, "auto_tune_tensor_fusion": false, "tensor_fusion_threshold": 64, "average_training_metrics": true, "tensor_fusion_cycle_time": 1, "average_aggregated_gradients": true}, "hyperparameters": {"lr": {"base": 10, "type": "log", "maxval": -1, "minval": -4}}, "reproducibility": {"experiment_seed": 274726249}, "scheduling_unit": 100, "retention_policy": null, "checkpoint_policy": "best", "records_per_epoch": 0, "checkpoint_storage": {"type": "shared_fs", "host_path": "/srv/tenax/checkpoints", "propagation": "rprivate", "storage_path": null, "container_path": null, "save_trial_best": 1, "save_trial_latest": 1, "save_experiment_best": 0}, "preemption_timeout": null, "min_checkpoint_period": {"batches": 0}, "min_validation_period": {"batches": 0}, "perform_initial_validation": false}', 274726249, 'c6dace2fcf9e487b6b7b77e3bd8b68634728949c8b2b845d11f1a106dc6e1814', '{}', NULL, DEFAULT, DEFAULT),
	(3, 'digits', '', '', '{}', '
name: digits
entrypoint: python3 train.py
hyperparameters: {lr: {type: log, base: 10, minval: -4, maxval: -1}}
searcher: {name: random, metric: accuracy, smaller_is_better: false, max_trials: 8}
resources: {slots_per_trial: 1}
', '{"pbs": {"pbsbatch_args": null, "slots_per_node": null}, "data": {}, "name": "digits", "debug": false, "slurm": {"gpu_type": null, "sbatch_args": null, "slots_per_node": null}, "labels": [], "project": "", "searcher": {"name": "random", "metric": "accuracy", "max_length": null, "max_trials": 8, "source_trial_id": null, "smaller_is_better": false, "max_concurrent_trials": 16, "source_checkpoint_uuid": null}, "profiling": {"enabled": false, "sync_timings": true, "begin_on_batch": 0, "end_after_batch": null}, "resources": {"weight": 1, "devices": [], "priority": 42, "shm_size": 4294967296, "max_slots": null, "resource_pool": "default", "is_single_node": null, "native_parallel": false, "slots_per_trial": 1}, "workspace": "", "entrypoint": "python3 train.py", "bind_mounts": [], "description": null, "environment": {"image": {"cpu": "determinedai/pytorch-ngc-dev:0736b6d", "cuda": "determinedai/pytorch-ngc-dev:0736b6d", "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"}, "ports": {}, "pod_spec": null, "proxy_ports": [], "registry_auth": null, "add_capabilities": [], "force_pull_image": false, "drop_capabilities": [], "environment_variables": {"cpu": [], "cuda": [], "rocm": []}}, "integrations": null, "log_policies": [{"name": "CUDA OOM", "action": null, "pattern": ".*CUDA out of memory.*"}, {"name": "ECC Error", "action": null, "pattern": ".*uncorrectable ECC error encountered.*"}], "max_restarts": 5, "optimizations": {"mixed_precision": "O0", "gradient_compression": false, "aggregation_frequency": 1, "grad_updates_size_file": null, "auto_tune_tensor_fusion": false, "tensor_fusion_threshold": 64, "average_training_metrics": true, "tensor_fusion_cycle_time": 1, "average_aggregated_gradients": true}, "hyperparameters": {"lr": {"base": 10, "type": "log", "maxval": -1, "minval": -4}}, "reproducibility": {"experiment_seed": 1144109459}, "scheduling_unit": 100, "retention_policy": null, "checkpoint_policy": "best", "records_per_epoch": 0, "checkpoint_storage": {"type": "shared_fs", "host_path": "/srv/tenax/checkpoints", "propagation": "rprivate", "storage_path": null, "container_path": null, "save_trial_best": 1, "save_trial_latest": 1, "save_experiment_best": 0}, "preemption_timeout": null, "min_checkpoint_period": {"batches": 0}, "min_validation_period": {"batches": 0}, "perform_initial_validation": false}', 1144109459, 'c6dace2fcf9e487b6b7b77e3bd8b68634728949c8b2b845d11f1a106dc6e1814', '{}', NULL, DEFAULT, DEFAULT),
	(4, 'digits', '', '', '{}', '
name: digits
entrypoint: python3 train.py
hyperparameters: {lr: {type: log, base: 10, minval: -4, maxval: -1}}
searcher: {name: random, metric: accuracy, smaller_is_better: false, max_trials: 8}
resources: {slots_per_trial: 1}
', '{"pbs": {"pbsbatch_args": null, "slots_per_node": null}, "data": {}, "name": "digits", "debug": false, "slurm": {"gpu_type": null, "sbatch_args": null, "slots_per_node": null}, "labels": [], "project": "", "searcher": {"name": "random", "metric": "accuracy", "max_length": null, "max_trials": 8, "source_trial_id": null, "smaller_is_better": false, "max_concurrent_trials": 16, "source_checkpoint_uuid": null}, "profiling": {"enabled": false, "sync_timings": true, "begin_on_batch": 0, "end_after_batch": null}, "resources": {"weight": 1, "devices": [], "priority": 42, "shm_size": 4294967296, "max_slots": null, "resource_pool": "default", "is_single_node": null, "native_parallel": false, "slots_per_trial": 1}, "workspace": "", "entrypoint": "python3 train.py", "bind_mounts": [], "description": null, "environment": {"image": {"cpu": "determinedai/pytorch-ngc-dev:0736b6d", "cuda": "determinedai/pytorch-ngc-dev:0736b6d", "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"}, "ports": {}, "pod_spec": null, "proxy_ports": [], "registry_auth": null, "add_capabilities": [], "force_pull_image": false, "drop_capabilities": [], "environment_variables": {"cpu": [], "cuda": [], "rocm": []}}, "integrations": null, "log_policies": [{"name": "CUDA OOM", "action": null, "pattern": ".*CUDA out of memory.*"}, {"name": "ECC Error", "action": null, "pattern": ".*uncorrectable ECC error encountered.*"}], "max_restarts": 5, "optimizations": {"mixed_precision": "O0", "gradient_compression": false, "aggregation_frequency": 1, "grad_updates_size_file": null, "auto_tune_tensor_fusion": false, "tensor_fusion_threshold": 64, "average_training_metrics": true, "tensor_fusion_cycle_time": 1, "average_aggregated_gradients": true}, "hyperparameters": {"lr": {"base": 10, "type": "log", "maxval": -1, "minval": -4}}, "reproducibility": {"experiment_seed": 725121769}, "scheduling_unit": 100, "retention_policy": null, "checkpoint_policy": "best", "records_per_epoch": 0, "checkpoint_storage": {"type": "shared_fs", "host_path": "/srv/tenax/checkpoints", "propagation": "rprivate", "storage_path": null, "container_path": null, "save_trial_best": 1, "save_trial_latest": 1, "save_experiment_best": 0}, "preemption_timeout": null, "min_checkpoint_period": {"batches": 0}, "min_validation_period": {"batches": 0}, "perform_initial_validation": false}', 725121769, 'c6dace2fcf9e487b6b7b77e3bd8b68634728949c8b2b845d11f1a106dc6e1814', '{}', NULL, DEFAULT, DEFAULT),
	(6, 'digits', '', '', '{}', '
name: digits
entrypoint: python3 train.py
hyperparameters: {lr: {type: log, base: 10, minval: -4, maxval: -1}}
searcher: {name: single, metric: accuracy, smaller_is_better: false}
resources: {slots_per_trial: 1}
', '{"pbs": {"pbsbatch_args": null, "slots_per_node": null}, "data": {}, "name": "digits", "debug": false, "slurm": {"gpu_type": null, "sbatch_args": null, "slots_per_node": null}, "labels": [], "project": "", "searcher": {"name": "single", "metric": "accuracy", "max_length": null, "source_trial_id": null, "smaller_is_better": false, "source_checkpoint_uuid": null}, "profiling": {"enabled": false, "sync_timings": true, "begin_on_batch": 0, "end_after_batch": null}, "resources": {"weight": 1, "devices": [], "priority": 42, "shm_size": 4294967296, "max_slots": null, "resource_pool": "default", "is_single_node": null, "native_parallel": false, "slots_per_trial": 1}, "workspace": "", "entrypoint": "python3 train.py", "bind_mounts": [], "description": null, "environment": {"image": {"cpu": "determinedai/pytorch-ngc-dev:0736b6d", "cuda": "determinedai/pytorch-ngc-dev:0736b6d", "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"}, "ports": {}, "pod_spec": null, "proxy_ports": [], "registry_auth": null, "add_capabilities": [], "force_pull_image": false, "drop_capabilities": [], "environment_variables": {"cpu": [], "cuda": [], "rocm": []}}, "integrations": null, "log_policies": [{"name": "CUDA OOM", "action": null, "pattern": ".*CUDA out of memory.*"}, {"name": "ECC Error", "action": null, "pattern": ".*uncorrectable ECC error encountered.*"}], "max_restarts": 5, "optimizations": {"mixed_precision": "O0", "gradient_compression": false, "aggregation_frequency": 1, "grad_updates_size_file": null, "auto_tune_tensor_fusion": false, "tensor_fusion_threshold": 64, "average_training_metrics": true, "tensor_fusion_cycle_time": 1, "average_aggregated_gradients": true}, "hyperparameters": {"lr": {"base": 10, "type": "log", "maxval": -1, "minval": -4}}, "reproducibility": {"experiment_seed": 2007826360}, "scheduling_unit": 100, "retention_policy": null, "checkpoint_policy": "best", "records_per_epoch": 0, "checkpoint_storage": {"type": "shared_fs", "host_path": "/srv/tenax/checkpoints", "propagation": "rprivate", "storage_path": null, "container_path": null, "save_trial_best": 1, "save_trial_latest": 1, "save_experiment_best": 0}, "preemption_timeout": null, "min_checkpoint_period": {"batches": 0}, "min_validation_period": {"batches": 0}, "perform_initial_validation": false}', 2007826360, 'c6dace2fcf9e487b6b7b77e3bd8b68634728949c8b2b845d11f1a106dc6e1814', '{}', NULL, DEFAULT, DEFAULT),
	(7, 'digits', '', '', '{}', '
name: digits
entrypoint: python3 train.py
hyperparameters: {lr: {type: log, base: 10, minval: -4, maxval: -1}}
searcher: {name: single, metric: accuracy, smaller_is_better: false}
resources: {slots_per_trial: 1}
', '{"pbs": {"pbsbatch_args": null, "slots_per_node": null}, "data": {}, "name": "digits", "debug": false, "slurm": {"gpu_type": null, "sbatch_args": null, "slots_per_node": null}, "labels": [], "project": "", "searcher": {"name": "single", "metric": "accuracy", "max_length": null, "source_trial_id": null, "smaller_is_better": false, "source_checkpoint_uuid": null}, "profiling": {"enabled": false, "sync_timings": true, "begin_on_batch": 0, "end_after_batch": null}, "resources": {"weight": 1, "devices": [], "priority": 42, "shm_size": 4294967296, "max_slots": null, "resource_pool": "default", "is_single_node": null, "native_parallel": false, "slots_per_trial": 1}, "workspace": "", "entrypoint": "python3 train.py", "bind_mounts": [], "description": null, "environment": {"image": {"cpu": "determinedai/pytorch-ngc-dev:0736b6d", "cuda": "determinedai/pytorch-ngc-dev:0736b6d", "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"}, "ports": {}, "pod_spec": null, "proxy_ports": [], "registry_auth": null, "add_capabilities": [], "force_pull_image": false, "drop_capabilities": [], "environment_variables": {"cpu": [], "cuda": [], "rocm": []}}, "integrations": null, "log_policies": [{"name": "CUDA OOM", "action": null, "pattern": ".*CUDA out of memory.*"}, {"name": "ECC Error", "action": null, "pattern": ".*uncorrectable ECC error encountered.*"}], "max_restarts": 5, "optimizations": {"mixed_precision": "O0", "gradient_compression": false, "aggregation_frequency": 1, "grad_updates_size_file": null, "auto_tune_tensor_fusion": false, "tensor_fusion_threshold": 64, "average_training_metrics": true, "tensor_fusion_cycle_time": 1, "average_aggregated_gradients": true}, "hyperparameters": {"lr": {"base": 10, "type": "log", "maxval": -1, "minval": -4}}, "reproducibility": {"experiment_seed": 507699496}, "scheduling_unit": 100, "retention_policy": null, "checkpoint_policy": "best", "records_per_epoch": 0, "checkpoint_storage": {"type": "shared_fs", "host_path": "/srv/tenax/checkpoints", "propagation": "rprivate", "storage_path": null, "container_path": null, "save_trial_best": 1, "save_trial_latest": 1, "save_experiment_best": 0}, "preemption_timeout": null, "min_checkpoint_period": {"batches": 0}, "min_validation_period": {"batches": 0}, "perform_initial_validation": false}', 507699496, 'c6dace2fcf9e487b6b7b77e3bd8b68634728949c8b2b845d11f1a106dc6e1814', '{}', NULL, DEFAULT, DEFAULT),
	(8, 'digits', '', '', '{}', '
name: digits
entrypoint: python3 train.py
hyperparameters: {lr: {type: log, base: 10, minval: -4, maxval: -1}}
searcher: {name: single, metric: accuracy, smaller_is_better: false}
resources: {slots_per_trial: 1}
', '{"pbs": {"pbsbatch_args": null, "slots_per_node": null}, "data": {}, "name": "digits", "debug": false, "slurm": {"gpu_type": null, "sbatch_args": null, "slots_per_node": null}, "labels": [], "project": "", "searcher": {"name": "single", "metric": "accuracy", "max_length": null, "source_trial_id": null, "smaller_is_better": false, "source_checkpoint_uuid": null}, "profiling": {"enabled": false, "sync_timings": true, "begin_on_batch": 0, "end_after_batch": null}, "resources": {"weight": 1, "devices": [], "priority": 42, "shm_size": 4294967296, "max_slots": null, "resource_pool": "default", "is_single_node": null, "native_parallel": false, "slots_per_trial": 1}, "workspace": "", "entrypoint": "python3 train.py", "bind_mounts": [], "description": null, "environment": {"image": {"cpu": "determinedai/pytorch-ngc-dev:0736b6d", "cuda": "determinedai/pytorch-ngc-dev:0736b6d", "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"}, "ports": {}, "pod_spec": null, "proxy_ports": [], "registry_auth": null, "add_capabilities": [], "force_pull_image": false, "drop_capabilities": [], "environment_variables": {"cpu": [], "cuda": [], "rocm": []}}, "integrations": null, "log_policies": [{"name": "CUDA OOM", "action": null, "pattern": ".*CUDA out of memory.*"}, {"name": "ECC Error", "action": null, "pattern": ".*uncorrectable ECC error encountered.*"}], "max_restarts": 5, "optimizations": {"mixed_precision": "O0", "gradient_compression": false, "aggregation_frequency": 1, "grad_updates_size_file": null, "auto_tune_tensor_fusion": false, "tensor_fusion_threshold": 64, "average_training_metrics": true, "tensor_fusion_cycle_time": 1, "average_aggregated_gradients": true}, "hyperparameters": {"lr": {"base": 10, "type": "log", "maxval": -1, "minval": -4}}, "reproducibility": {"experiment_seed": 1821836886}, "scheduling_unit": 100, "retention_policy": null, "checkpoint_policy": "best", "records_per_epoch": 0, "checkpoint_storage": {"type": "shared_fs", "host_path": "/srv/tenax/checkpoints", "propagation": "rprivate", "storage_path": null, "container_path": null, "save_trial_best": 1, "save_trial_latest": 1, "save_experiment_best": 0}, "preemption_timeout": null, "min_checkpoint_period": {"batches": 0}, "min_validation_period": {"batches": 0}, "perform_initial_validation": false}', 1821836886, 'c6dace2fcf9e487b6b7b77e3bd8b68634728949c8b2b845d11f1a106dc6e1814', '{}', NULL, DEFAULT, DEFAULT),
	(9, 'far', '', '', '{}', 'name: far
searcher: {name: single, metric: score}
', '{"pbs": {"pbsbatch_args": null, "slots_per_node": null}, "data": {}, "name": "far", "debug": false, "slurm": {"gpu_type": null, "sbatch_args": null, "slots_per_node": null}, "labels": [], "project": "", "searcher": {"name": "single", "metric": "score", "max_length": null, "source_trial_id": null, "smaller_is_better": true, "source_checkpoint_uuid": null}, "profiling": {"enabled": false, "sync_timings": true, "begin_on_batch": 0, "end_after_batch": null}, "resources": {"weight": 1, "devices": [], "priority": 42, "shm_size": 4294967296, "max_slots": null, "resource_pool": "default", "is_single_node": null, "native_parallel": false, "slots_per_trial": 1}, "workspace": "", "entrypoint": null, "bind_mounts": [], "description": null, "environment": {"image": {"cpu": "determinedai/pytorch-ngc-dev:0736b6d", "cuda": "determinedai/pytorch-ngc-dev:0736b6d", "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"}, "ports": {}, "pod_spec": null, "proxy_ports": [], "registry_auth": null, "add_capabilities": [], "force_pull_image": false, "drop_capabilities": [], "environment_variables": {"cpu": [], "cuda": [], "rocm": []}}, "integrations": null, "log_policies": [{"name": "CUDA OOM", "action": null, "pattern": ".*CUDA out of memory.*"}, {"name": "ECC Error", "action": null, "pattern": ".*uncorrectable ECC error encountered.*"}], "max_restarts": 5, "optimizations": {"mixed_precision": "O0", "gradient_compression": false, "aggregation_frequency": 1, "grad_updates_size_file": null, "auto_tune_tensor_fusion": false, "tensor_fusion_threshold": 64, "average_training_metrics": true, "tensor_fusion_cycle_time": 1, "average_aggregated_gradients": true}, "hyperparameters": {}, "reproducibility": {"experiment_seed": 313684192}, "scheduling_unit": 100, "retention_policy": null, "checkpoint_policy": "best", "records_per_epoch": 0, "checkpoint_storage": {"type": "shared_fs", "host_path": "/srv/tenax/checkpoints", "propagation": "rprivate", "storage_path": null, "container_path": null, "save_trial_best": 1, "save_trial_latest": 1, "save_experiment_best": 0}, "preemption_timeout": null, "min_checkpoint_period": {"batches": 0}, "min_validation_period": {"batches": 0}, "perform_initial_validation": false}', 313684192, NULL, '{}', NULL, DEFAULT, DEFAULT),
	(5, 'renamed', '', 'read me', '{x,y}', '
name: digits
entrypoint: python3 train.py
hyperparameters: {lr: {type: log, base: 10, minval: -4, maxval: -1}}
searcher: {name: single, metric: accuracy, smaller_is_better: false}
resources: {slots_per_trial: 1}
', '{"pbs": {"pbsbatch_args": null, "slots_per_node": null}, "data": {}, "name": "renamed", "debug": false, "slurm": {"gpu_type": null, "sbatch_args": null, "slots_per_node": null}, "labels": ["x", "y"], "project": "", "searcher": {"name": "single", "metric": "accuracy", "max_length": null, "source_trial_id": null, "smaller_is_better": false, "source_checkpoint_uuid": null}, "profiling": {"enabled": false, "sync_timings": true, "begin_on_batch": 0, "end_after_batch": null}, "resources": {"weight": 1, "devices": [], "priority": 42, "shm_size": 4294967296, "max_slots": null, "resource_pool": "default", "is_single_node": null, "native_parallel": false, "slots_per_trial": 1}, "workspace": "", "entrypoint": "python3 train.py", "bind_mounts": [], "description": null, "environment": {"image": {"cpu": "determinedai/pytorch-ngc-dev:0736b6d", "cuda": "determinedai/pytorch-ngc-dev:0736b6d", "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"}, "ports": {}, "pod_spec": null, "proxy_ports": [], "registry_auth": null, "add_capabilities": [], "force_pull_image": false, "drop_capabilities": [], "environment_variables": {"cpu": [], "cuda": [], "rocm": []}}, "integrations": null, "log_policies": [{"name": "CUDA OOM", "action": null, "pattern": ".*CUDA out of memory.*"}, {"name": "ECC Error", "action": null, "pattern": ".*uncorrectable ECC error encountered.*"}], "max_restarts": 5, "optimizations": {"mixed_precision": "O0", "gradient_compression": false, "aggregation_frequency": 1, "grad_updates_size_file": null, "auto_tune_tensor_fusion": false, "tensor_fusion_threshold": 64, "average_training_metrics": true, "tensor_fusion_cycle_time": 1, "average_aggregated_gradients": true}, "hyperparameters": {"lr": {"base": 10, "type": "log", "maxval": -1, "minval": -4}}, "reproducibility": {"experiment_seed": 2026722653}, "scheduling_unit": 100, "retention_policy": null, "checkpoint_policy": "best", "records_per_epoch": 0, "checkpoint_storage": {"type": "shared_fs", "host_path": "/srv/tenax/checkpoints", "propagation": "rprivate", "storage_path": null, "container_path": null, "save_trial_best": 1, "save_trial_latest": 1, "save_experiment_best": 0}, "preemption_timeout": null, "min_checkpoint_period": {"batches": 0}, "min_validation_period": {"batches": 0}, "perform_initial_validation": false}', 2026722653, 'c6dace2fcf9e487b6b7b77e3bd8b68634728949c8b2b845d11f1a106dc6e1814', '{}', NULL, DEFAULT, DEFAULT);

INSERT INTO public.experiment_tallies VALUES
	(3, false, 8, 'default', 1, 0, 0, 0, 8, 0.9, DEFAULT),
	(2, false, 8, 'default', 2, 0, 3, 12, 7, 0.975, DEFAULT),
	(1, true, 6, 'default', 6, 6, 8, 32, 3, 1.0280954033857316e-05, DEFAULT),
	(4, false, 8, 'default', 1, 0, 0, 0, NULL, NULL, DEFAULT),
	(6, false, 1, 'default', 1, 0, 0, 0, NULL, NULL, DEFAULT),
	(5, false, 1, 'default', 1, 1, 0, 0, NULL, NULL, DEFAULT),
	(7, false, 1, 'default', 1, 1, 0, 0, NULL, NULL, DEFAULT),
	(8, false, 1, 'default', 1, 1, 0, 0, NULL, NULL, DEFAULT),
	(9, true, 1, 'default', 1, 0, 0, 0, NULL, NULL, DEFAULT);

INSERT INTO public.experiments VALUES
	(1, '34f70cb9-4573-4642-93ad-cd96ecbc9389', 2, 1, NULL, 'COMPLETED', 'all 6 trials are over: 6 finished', 4, false, false, '2026-11-22 11:20:50.672249+00', '2026-11-22 11:20:50.672249+00', '2026-11-22 11:20:54.036409+00', NULL),
	(2, '0d085f4c-38a9-458f-aeb9-5846d6c343a4', 2, 1, NULL, 'ACTIVE', '', 2, false, false, '2026-11-22 11:20:55.098205+00', '2026-11-22 11:20:55.098205+00', NULL, NULL),
	(3, 'b84bc894-a8a3-4811-a1f7-93dd768173f2', 3, 1, NULL, 'ACTIVE', '', 2, false, false, '2026-11-22 11:20:55.146939+00', '2026-11-22 11:20:55.146939+00', NULL, NULL),
	(4, '4148d837-c359-42d9-9ec9-6d7707c5e349', 1, 1, NULL, 'ACTIVE', '', 2, false, false, '2026-11-22 11:20:55.183523+00', '2026-11-22 11:20:55.183523+00', NULL, NULL),
	(6, 'f47fe0a9-fe6e-4948-be81-dd71dee31b89', 2, 2, NULL, 'PAUSED', 'paused by determined', 3, false, false, '2026-11-22 11:20:55.266687+00', '2026-11-22 11:20:55.266687+00', NULL, NULL),
	(5, '27401a0e-70e1-47e0-a8ed-23fecc921682', 2, 2, NULL, 'CANCELED', '', 2, false, false, '2026-11-22 11:20:55.257872+00', '2026-11-22 11:20:55.257872+00', '2026-11-22 11:20:55.320975+00', NULL),
	(8, 'cad8d432-e924-4a6e-9061-d4f7bddba04b', 2, 2, NULL, 'CANCELED', '', 2, false, false, '2026-11-22 11:20:55.294527+00', '2026-11-22 11:20:55.294527+00', '2026-11-22 11:20:55.320975+00', NULL),
	(7, '5455ece2-dee8-41c4-8552-fb33d0abf1fe', 2, 2, NULL, 'CANCELED', '', 3, false, true, '2026-11-22 11:20:55.286271+00', '2026-11-22 11:20:55.286271+00', '2026-11-22 11:20:55.320975+00', NULL),
	(9, 'a8b920c5-92eb-49c2-8543-1b3236fc4bad', 2, 1, NULL, 'ACTIVE', '', 2, true, false, '2026-11-22 11:20:55.391834+00', '2026-11-22 11:20:55.391834+00', NULL, 'far');

INSERT INTO public.garbage_due VALUES
	(2, 3, false);

INSERT INTO public.jobs VALUES
	('a59ea9d3-c768-4026-b5ce-525905985ff8', 'default', 42, 1, NULL, 1795346451680545, 2, 2, '2026-11-22 11:20:51.662566+00', '2026-11-22 11:20:51.950527+00'),
	('3f06049f-def1-495d-ac19-b37d1eec8118', 'default', 42, 1, NULL, 1795346451926435, 2, 2, '2026-11-22 11:20:51.90444+00', '2026-11-22 11:20:52.183106+00'),
	('b1c5f38d-57ba-416b-8ca6-17f2f0c5ab09', 'default', 42, 1, NULL, 1795346452926455, 2, 2, '2026-11-22 11:20:52.907125+00', '2026-11-22 11:20:53.392814+00'),
	('34f70cb9-4573-4642-93ad-cd96ecbc9389', 'default', 42, 1, NULL, 1795346450687282, 2, 2, '2026-11-22 11:20:50.672249+00', '2026-11-22 11:20:54.036409+00'),
	('42e05a6c-850d-41be-bb12-6f0beec02e81', 'default', 42, 1, NULL, 1795346454097193, 2, 2, '2026-11-22 11:20:54.093459+00', '2026-11-22 11:20:54.192626+00'),
	('0d085f4c-38a9-458f-aeb9-5846d6c343a4', 'default', 42, 1, NULL, 1795346455102396, 2, 1, '2026-11-22 11:20:55.098205+00', NULL),
	('b84bc894-a8a3-4811-a1f7-93dd768173f2', 'default', 42, 1, NULL, 1795346455149392, 3, 1, '2026-11-22 11:20:55.146939+00', NULL),
	('4148d837-c359-42d9-9ec9-6d7707c5e349', 'default', 42, 1, NULL, 1795346455184099, 1, 1, '2026-11-22 11:20:55.183523+00', NULL),
	('f47fe0a9-fe6e-4948-be81-dd71dee31b89', 'default', 42, 1, NULL, 1795346455267092, 2, 1, '2026-11-22 11:20:55.266687+00', NULL),
	('27401a0e-70e1-47e0-a8ed-23fecc921682', 'default', 42, 1, NULL, 1795346455258306, 2, 1, '2026-11-22 11:20:55.257872+00', '2026-11-22 11:20:55.320975+00'),
	('5455ece2-dee8-41c4-8552-fb33d0abf1fe', 'default', 42, 1, NULL, 1795346455286655, 2, 1, '2026-11-22 11:20:55.286271+00', '2026-11-22 11:20:55.320975+00'),
	('cad8d432-e924-4a6e-9061-d4f7bddba04b', 'default', 42, 1, NULL, 1795346455294953, 2, 1, '2026-11-22 11:20:55.294527+00', '2026-11-22 11:20:55.320975+00'),
	('a8b920c5-92eb-49c2-8543-1b3236fc4bad', 'default', 42, 1, NULL, 1795346455396527, 2, 2, '2026-11-22 11:20:55.391834+00', '2026-11-22 11:20:55.391834+00'),
	('19dfc054-27c2-4ee4-b704-4552a2186093', 'default', 42, 1, NULL, 1795346455509935, 2, 1, '2026-11-22 11:20:55.509156+00', NULL),
	('66256e25-81c5-47ac-b7a8-df411a6091c9', 'default', 42, 1, NULL, 1795346455521647, 2, 1, '2026-11-22 11:20:55.521303+00', NULL),
	('de3f5e5d-ac54-4662-9ff1-d11034d2c51e', 'default', 42, 1, NULL, 1795346455540548, 2, 1, '2026-11-22 11:20:55.534683+00', NULL);

INSERT INTO public.launched_tasks VALUES
	('85deac47-dc32-4c9d-bdf9-7908a333f9f0', 1, NULL, NULL, NULL, 'deletes files of 1 checkpoints of experiment 1', 'ERROR', 'it ended with exit code 1', 3, 1, false, NULL, '2026-11-22 11:20:51.950527+00'),
	('728809f3-c264-4759-aec9-aac1d542b18c', 1, NULL, NULL, NULL, 'deletes files of 1 checkpoints of experiment 1', 'ERROR', 'it ended with exit code 1', 3, 1, false, NULL, '2026-11-22 11:20:52.183106+00'),
	('08cca5f4-e063-4c73-86f7-23b5d71d0bed', 1, NULL, NULL, NULL, 'deletes files of 1 checkpoints of experiment 1', 'ERROR', 'it ended with exit code 1', 3, 1, false, NULL, '2026-11-22 11:20:53.392814+00'),
	('1c4cf360-25fd-480b-8c17-333dda853539', 1, NULL, NULL, NULL, 'deletes files of 1 checkpoints of experiment 1', 'ERROR', 'it ended with exit code 1', 3, 1, false, NULL, '2026-11-22 11:20:54.192626+00'),
	('369772f1-93c0-4153-b9a5-9e8f01ecede0', 1, NULL, NULL, NULL, 'Command (serene-maple-ibis)', 'ACTIVE', '', 1, 0, false, NULL, NULL),
	('7029872e-7493-447a-a3e1-f25401d169d5', 1, 1, NULL, NULL, 'Task (merry-opal-ibis)', 'ACTIVE', '', 1, 0, true, NULL, NULL),
	('93711de3-d4c3-492d-b2a7-08d1841a2329', 1, 1, NULL, NULL, 'Task (hardy-ivory-lark)', 'STOPPING_PAUSED', 'paused by determined', 2, 0, true, NULL, NULL);

INSERT INTO public.leases VALUES
	('launching', 1, 'session:ebf426e5-6adc-4725-899d-18d6040d7b8b', '2026-11-22 11:21:05.457424+00'),
	('retaining', 1, 'session:ebf426e5-6adc-4725-899d-18d6040d7b8b', '2026-11-22 11:21:05.459053+00'),
	('searching', 1, 'session:ebf426e5-6adc-4725-899d-18d6040d7b8b', '2026-11-22 11:21:05.461101+00'),
	('telling', 1, 'session:ebf426e5-6adc-4725-899d-18d6040d7b8b', '2026-11-22 11:21:05.463181+00'),
	('deleting', 1, 'session:ebf426e5-6adc-4725-899d-18d6040d7b8b', '2026-11-22 11:21:05.464445+00'),
	('collecting', 1, 'session:ebf426e5-6adc-4725-899d-18d6040d7b8b', '2026-11-22 11:21:05.484751+00'),
	('rescuing', 1, 'session:ebf426e5-6adc-4725-899d-18d6040d7b8b', '2026-11-22 11:21:05.485073+00'),
	('tending', 1, 'session:ebf426e5-6adc-4725-899d-18d6040d7b8b', '2026-11-22 11:21:05.485198+00'),
	('scheduling', 1, 'session:ebf426e5-6adc-4725-899d-18d6040d7b8b', '2026-11-22 11:21:05.485382+00');

INSERT INTO public.log_chunks_202611 VALUES
	(202611, '1.b9ecd94e-8edd-4a89-970a-8d43486e4980', 0, 1, '2026-11-22 11:20:51.724229+00', '2026-11-22 11:20:51.724229+00', 8, '[{"source": "master", "allocation_id": "1.b9ecd94e-8edd-4a89-970a-8d43486e4980.1"}]', '\x78013bfabd61f5ed043686ff40c0ccc000004af20828', '\x7801258cb10e83300c057fe58dadc412860e305236aa76e80f58c434519183ec44fdfd06586e39dd691138fcc890036325cb1d7c12ee103394690eec0f95d3d6408b7cd0222d151777036f690e766d40e2a1245fabb36add9e28f767a9915644c3f07cbca6f13ddeffc96f2577'),
	(202611, '1.19c2a8c7-f629-4851-8396-3b70d3d06cfa', 0, 1, '2026-11-22 11:20:51.804941+00', '2026-11-22 11:20:51.804941+00', 8, '[{"source": "master", "allocation_id": "1.19c2a8c7-f629-4851-8396-3b70d3d06cfa.1"}]', '\x7801e3356e5a7d3b818de13f103033300000358c06ae', '\x7801258cb10e83300c057fe58d5462a1430718295bab32f00316314d0472909d88df2782e596d39d664183830cc93336b2d4c245e11621419966cfee5229ee3534cb1f4fc4a5a06a5ee03dcede1e35481c9464b532bb6cb9297777a981360443fffb8e9f611ade27c98e2578'),
	(202611, '85deac47-dc32-4c9d-bdf9-7908a333f9f0', 0, 1, '2026-11-22 11:20:52.000178+00', '2026-11-22 11:20:52.000178+00', 32, '[{"source": "master", "allocation_id": "85deac47-dc32-4c9d-bdf9-7908a333f9f0.1"}]', '\x7801dba4dbbafa76021bc37f2060656000003f100752', '\x7801cb2c5148cd4b494d5128cf2cc95048adc82c5148ce4f495530b45628c9485528492cce56c82c56700d0af20f020059130ed5'),
	(202611, '728809f3-c264-4759-aec9-aac1d542b18c', 0, 1, '2026-11-22 11:20:52.219206+00', '2026-11-22 11:20:52.219206+00', 32, '[{"source": "master", "allocation_id": "728809f3-c264-4759-aec9-aac1d542b18c.1"}]', '\x7801736bed587d3b818de13f10b0323000003db30741', '\x7801cb2c5148cd4b494d5128cf2cc95048adc82c5148ce4f495530b45628c9485528492cce56c82c56700d0af20f020059130ed5'),
	(202611, '1.87e1b154-ac5b-4561-80de-97644b34e110', 0, 1, '2026-11-22 11:20:52.430034+00', '2026-11-22 11:20:52.430034+00', 8, '[{"source": "master", "allocation_id": "1.87e1b154-ac5b-4561-80de-97644b34e110.1"}]', '\x7801bbb4a77bf5ed043686ff40c0ccc00000490a0805', '\x78011d8c310ec2400c04bfb225483440aa5086742028f201430c77e2e43bd98ea2fc3e479a9566a5199d0447cc64f0c04864dec23c97c22398342d2da243497e8633f2a70e559ee45bb58a27ec1a70c9ef60fb03e6c0ca5be9c5e6ff308b23cb65fb5c23254443f7b83f6ffdd05f57508828f1'),
	(202611, '1.131fdbe8-bc0d-4cb1-ac6c-a036bfae9158', 0, 1, '2026-11-22 11:20:52.737032+00', '2026-11-22 11:20:52.737032+00', 8, '[{"source": "master", "allocation_id": "1.131fdbe8-bc0d-4cb1-ac6c-a036bfae9158.1"}]', '\x7801e3c899b0fa76021bc37f206066600000391506f0', '\x78011d8cb10ec2300c057fe58d2075a1ea5446da0d44077ec0149744444e64bbaaf87b42c73be94e57c1091b193c301299f730cfa5f00b4c9abe3da243493e8616794107aabccabb66155b1c3a70c973b063832db0f27e7ab2f97fcce2c872de9d6ba48468b8dc6fd3757c8cc30f508328f1'),
	(202611, '1.da6ab844-88b3-4204-a74c-f87fe6971b87', 0, 1, '2026-11-22 11:20:52.869053+00', '2026-11-22 11:20:52.869053+00', 8, '[{"source": "master", "allocation_id": "1.da6ab844-88b3-4204-a74c-f87fe6971b87.1"}]', '\x7801db9b3f69f5ed043686ff40c0ccc0000043f407aa', '\x7801358c310e83301004bfb2659068682848097489a0e003277c602be88cee8cf87e2c10cd3433bb7a082a9c64489eb191a5062e0a370809ca347b76974a712fa187ac398f4bc6abaac17b9cbd1525481c94e4678fcd6fcaef7ba9813604433b7cc74f3ff5dd1fc8f02575'),
	(202611, '08cca5f4-e063-4c73-86f7-23b5d71d0bed', 0, 1, '2026-11-22 11:20:53.429842+00', '2026-11-22 11:20:53.429842+00', 32, '[{"source": "master", "allocation_id": "08cca5f4-e063-4c73-86f7-23b5d71d0bed.1"}]', '\x78010bfa376bf5ed043686ff40c0cac0000045ef07d8', '\x7801cb2c5148cd4b494d5128cf2cc95048adc82c5148ce4f495530b45628c9485528492cce56c82c56700d0af20f020059130ed5'),
	(202611, '1.b7b03843-b5cb-4f06-b0fc-31c0fb92bd99', 0, 1, '2026-11-22 11:20:54.014053+00', '2026-11-22 11:20:54.014053+00', 8, '[{"source": "master", "allocation_id": "1.b7b03843-b5cb-4f06-b0fc-31c0fb92bd99.1"}]', '\x78014b7db178f5ed043686ff40c0ccc00000464707dc', '\x7801258b3b0e83400c05aff24a22d14091024aa0234a0a2e60b1865d81bcc85e94ebf36ba69919dd0505fe64489eb192a50a2e0a570809ca347a76b74a71cba1bbcc671ea71359f1066f71f4f6ca41e2a0248ba1bc6c792dcaf5736aa015c1d07c3fbfbe1bbaf600c9332577'),
	(202611, '1c4cf360-25fd-480b-8c17-333dda853539', 0, 1, '2026-11-22 11:20:54.19574+00', '2026-11-22 11:20:54.19574+00', 32, '[{"source": "master", "allocation_id": "1c4cf360-25fd-480b-8c17-333dda853539.1"}]', '\x78019359b76cf5ed043686ff40c0cac000003f01075e', '\x7801cb2c5148cd4b494d5128cf2cc95048adc82c5148ce4f495530b45628c9485528492cce56c82c56700d0af20f020059130ed5'),
	(202611, '2.00000000-0000-0000-0000-000000000001', 0, 300, '2026-11-22 11:20:55.745103+00', '2026-11-22 11:20:55.745103+00', 8, '[{"source": "task", "stdtype": "stdout", "agent_id": "a1", "container_id": "e045fd34-3f29-4f25-8a52-0b430645f2e1", "allocation_id": "2.00000000-0000-0000-0000-000000000001.1"}]', '\x7801f30fdab7fa76021b83ff283d1a0ea3e960341f8c9603a3e5c06839305a0e8c96035429071846c168088c86c068080c9110601e054487c01089d251670eb11000006c0adf96', '\x780145d3b10dd8381404d1dc55b804ed9012c9821c1830aefff06068478e361b901f787f7efff7ebe7f5e3cfdfc93bbc33de99efdcef3cefac77f63be79d9869270da5a53495b6d2585a4b73698ff6f05dedd11eedd11eedd11eedd1de686fb437fc687ba3bdd1de686fb437da1bedcdf6667bb3bde9e5da9bedcdf6667bb3bdd9dedddedddedddedddedddedddedddedddedddeddded3ded3ded3ded3ded3ded3ded3ded3ded3ded3de6a6fb5b7da5bedadf6567babbdd5de6a6fb5b7dbdbededf6767bbbbdddde6e6fb7b7dbdbed9df64e7ba7bdd3de69efb477da3bed9df64e7bb91accd562ae2673b599abd15cade66a3657bbb91ace65f91f15cb1f964fcbc7e5f3f281f9c47c643413d14435c137eb26c28972229d6827e2897a229fe82702caf01a128a8622a2a828328a8e22a42829528a9632bdb39a22a7e829828aa222a9682aa28aaa22abe82ac28ab222ad682be28aba22afe82b028bc222b1682c228bca22b3e82c428bd222b5682d628bda22b7e82d828be222b9682ea28bea22bbe82ec28bf222bd682fe28bfa22bfe82f028c0223c168100da241348806d1201a448368100da24134486a100da241348806d1201a448368100da241348806d1201a448368100da241348806d1201a448368100da241348806d1201a448368100da241348806d1201a448368100da241348806d1201a448368100da241348806d1201a448368100da241348806d1201a448368100da241348806d1201a448368100da241348806d1201a448368100da241348806d1201a44839cf33f30c9c205'),
	(202611, '369772f1-93c0-4153-b9a5-9e8f01ecede0', 0, 1, '2026-01-02 03:04:05.5+00', '2026-01-02 03:04:05.5+00', 16, '[{"source": "task", "stdtype": "stderr"}]', '\x78014b9812f22dce9d8de13f10b0303000003a8f06ea', '\x78012b4ecc4c5130000007dd01f2'),
	(202611, '369772f1-93c0-4153-b9a5-9e8f01ecede0', 1, 1, '2026-01-02 03:04:05.5+00', '2026-01-02 03:04:05.5+00', 16, '[{"source": "task", "stdtype": "stderr"}]', '\x78014b9812f22dce9d8de13f10b0303000003a8f06ea', '\x78012b4ecc4c5130040007de01f3'),
	(202611, '369772f1-93c0-4153-b9a5-9e8f01ecede0', 2, 1, '2026-01-02 03:04:05.5+00', '2026-01-02 03:04:05.5+00', 16, '[{"source": "task", "stdtype": "stderr"}]', '\x78014b9812f22dce9d8de13f10b0303000003a8f06ea', '\x78012b4ecc4c5130020007df01f4'),
	(202611, '1.131fdbe8-bc0d-4cb1-ac6c-a036bfae9158', 1, 1, '2026-01-02 03:04:05.5+00', '2026-01-02 03:04:05.5+00', 32, '[{"source": "task", "stdtype": "stderr"}]', '\x78014b9812f22dce9d8de13f10b0323000003a9206eb', '\x78012bc9c82c5600a2e29cfc722b85fcd21285fc3485dcd4dcfca24a008a1209fa'),
	(202611, '1.131fdbe8-bc0d-4cb1-ac6c-a036bfae9158', 2, 1, '2026-11-22 11:20:55.985401+00', '2026-11-22 11:20:55.985401+00', 16, '[{"source": "master"}]', '\x7801fbf9e7e0eadb096c0cff818085810100519408a3', '\x7801cbc94f5728c8cfc94cae54502fcec92f5757c84d2c49ce484db152502fc9c82c56002290b895427e6989427e9a426e6a6e7e51a53a00346713bd');

INSERT INTO public.log_matches VALUES
	(5, 'slow', 'LABEL', '', 1, 'this is slow: out of memory', '2026-11-22 11:20:55.985003+00');

INSERT INTO public.log_streams VALUES
	('e045fd34-3f29-4f25-8a52-0b430645f2e1', 'stdout', '2.00000000-0000-0000-0000-000000000001', 7116, '\x74686520656e64206f662061206c696e6520636f6d6573206c61');

INSERT INTO public.log_tasks VALUES
	('1.b9ecd94e-8edd-4a89-970a-8d43486e4980', 202611, 1, 0, 1),
	('1.19c2a8c7-f629-4851-8396-3b70d3d06cfa', 202611, 1, 0, 1),
	('85deac47-dc32-4c9d-bdf9-7908a333f9f0', 202611, 1, 0, 1),
	('728809f3-c264-4759-aec9-aac1d542b18c', 202611, 1, 0, 1),
	('1.87e1b154-ac5b-4561-80de-97644b34e110', 202611, 1, 0, 1),
	('1.da6ab844-88b3-4204-a74c-f87fe6971b87', 202611, 1, 0, 1),
	('08cca5f4-e063-4c73-86f7-23b5d71d0bed', 202611, 1, 0, 1),
	('1.b7b03843-b5cb-4f06-b0fc-31c0fb92bd99', 202611, 1, 0, 1),
	('1c4cf360-25fd-480b-8c17-333dda853539', 202611, 1, 0, 1),
	('2.00000000-0000-0000-0000-000000000001', 202611, 300, 0, 1),
	('369772f1-93c0-4153-b9a5-9e8f01ecede0', 202611, 3, 0, 3),
	('1.131fdbe8-bc0d-4cb1-ac6c-a036bfae9158', 202611, 3, 0, 3);

INSERT INTO public.metric_blocks_202611 VALUES
	(202611, 7, 'training', 0, 1, 41, 0, 40, '\x780163602412308c027c21000031540029', '\x78013bda1727bf7e29d749b5052a3b0abdb630bbc45473364554775e9dce70eb3c57c1bca22517a63eb5d59cb455ac5b82838d55909595834d889d9783954794958d478a958d85858385859d45809d950508595958b6b13210075613a78c81e136b10a138855c846ac42a2d5010021b917d2', '\x7801cb2bcdc9e1ca238588ae56aa50b23234a88d25479f1199fa8cc9d46702d4070018e44dba');

INSERT INTO public.metric_chunks_202611 VALUES
	(202611, 7, 'training', 'loss', 0, NULL, '\x647801636060086598153a894166965ba8c824410639198d59126e29a1d5221993a609b63070c8c9ca5cd0909ac5005238335485e1f84cf1506b15a0c2e3eb67b6892b868a58ebab540b0a30c8cb5d39be6bfd929950859e0c85336343377a0215162e9c9918cb1dba6ee3424f294127861a39c7c2830b1d610a8156cf2c0915065bbd67a6444964a8bbf0de4989821c0c1f80568bec91822904597d116a75dbccb68b27421f5ab7a8ec1454643808b4fa671b8ad5ae50ab3fcd4c74750aaddaf8cd7339d033ec40abd77c729cf9e1c383ab174e1e3d7460cfceed5b376fdab861dd9a552b572c5fb674c9e2458b162e5cb060febcb97366cf9a35d39e580000ab30762d'),
	(202611, 7, 'training', 'lr', 0, '\x7801abff0f040d00117204fc', '\x6478019b358b38307398809d44027b2201002d14b659'),
	(202611, 7, 'training', 'note', 0, '\x7801abff0f040d00117204fc', '\x6a78018b562a3654d2512a3602110620626872630141452bad');

INSERT INTO public.metric_cuts VALUES
	(8, 2, 'training', 6),
	(8, 2, 'validation', 5),
	(8, 2, 'other', 6);

INSERT INTO public.metric_groups VALUES
	(2, 'validation', 202611, 1, 16, 16, 0, 16, '\x7b226c6f7373223a5b226e756d626572222c302e303030313435343233353535303637313530322c31362c302e3030373836363230323036323632333136362c302e303030313435343233353535303637313530322c302e3030323332363737363838313037343430335d2c2265706f636873223a5b226e756d626572222c31362c31362c3133362e302c312e302c31362e305d7d', '2026-11-22 11:20:51.604342+00'),
	(1, 'validation', 202611, 1, 16, 16, 0, 16, '\x7b226c6f7373223a5b226e756d626572222c302e3030303031303538373737393433343532363730392c31362c302e303030353732373130363036353331343839392c302e3030303031303538373737393433343532363730392c302e30303031363934303434373039353234323733345d2c2265706f636873223a5b226e756d626572222c31362c31362c3133362e302c312e302c31362e305d7d', '2026-11-22 11:20:51.619575+00'),
	(4, 'validation', 202611, 1, 5, 5, 0, 5, '\x7b226c6f7373223a5b226e756d626572222c302e3030383038303432383130303733393232372c352c302e30393232353135353431353031303631362c302e3030383038303432383130303733393232372c302e3034303430323134303530333639363133365d2c2265706f636873223a5b226e756d626572222c352c352c31352e302c312e302c352e305d7d', '2026-11-22 11:20:52.365933+00'),
	(5, 'validation', 202611, 1, 5, 5, 0, 5, '\x7b226c6f7373223a5b226e756d626572222c302e303030313436333734393631343131333634392c352c302e303031363731313134313432373739373439342c302e303030313436333734393631343131333634392c302e303030373331383734383037303536383234365d2c2265706f636873223a5b226e756d626572222c352c352c31352e302c312e302c352e305d7d', '2026-11-22 11:20:52.67364+00'),
	(3, 'validation', 202611, 1, 16, 16, 0, 16, '\x7b226c6f7373223a5b226e756d626572222c302e3030303031303238303935343033333835373331362c31362c302e303030353536313133393130303835303535392c302e3030303031303238303935343033333835373331362c302e30303031363434393532363435343137313730355d2c2265706f636873223a5b226e756d626572222c31362c31362c3133362e302c312e302c31362e305d7d', '2026-11-22 11:20:52.750597+00'),
	(6, 'validation', 202611, 1, 16, 16, 0, 16, '\x7b226c6f7373223a5b226e756d626572222c302e303033383431313739333937383638373032352c31362c302e32303737373537383439333730393737322c302e303033383431313739333937383638373032352c302e30363134353838373033363538393932345d2c2265706f636873223a5b226e756d626572222c31362c31362c3133362e302c312e302c31362e305d7d', '2026-11-22 11:20:53.959739+00'),
	(7, 'validation', 202611, 1, 40, 4, 0, 40, '\x7b226163637572616379223a5b226e756d626572222c302e3937352c342c332e3739313636363636363636363636372c302e392c302e3937355d7d', '2026-11-22 11:20:55.660745+00'),
	(8, 'validation', 202611, 2, 5, 8, 0, 5, '\x7b226163637572616379223a5b226e756d626572222c302e392c352c312e392c302e312c302e395d7d', '2026-11-22 11:20:55.707166+00'),
	(7, 'training', 202611, 1, 46, 47, 41, 46, '\x7b226c6f7373223a5b226e756d626572222c302e30322c34372c352e34313439343831313535353133322c302e30322c312e305d2c226c72223a5b226e756d626572222c6e756c6c2c34302c342e3030303030303030303030303030322c302e312c302e315d2c226e6f7465223a5b22737472696e67222c6e756c6c2c302c302e302c22496e66696e697479222c222d496e66696e697479225d2c22626164223a5b226e756d626572222c6e756c6c2c352c224e614e222c224e614e222c224e614e225d7d', '2026-11-22 11:20:55.725923+00');

INSERT INTO public.metric_tail_202611 VALUES
	(202611, 1, 'validation', 0, 1, '{1}', '{1795346450929064}', '\x7b226c6f7373223a302e30303031363934303434373039353234323733342c2265706f636873223a317d', NULL),
	(202611, 2, 'validation', 0, 1, '{1}', '{1795346450929064}', '\x7b226c6f7373223a302e3030323332363737363838313037343430332c2265706f636873223a317d', NULL),
	(202611, 2, 'validation', 1, 1, '{2}', '{1795346451016352}', '\x7b226c6f7373223a302e303031313633333838343430353337323031362c2265706f636873223a327d', NULL),
	(202611, 1, 'validation', 1, 1, '{2}', '{1795346451068799}', '\x7b226c6f7373223a302e30303030383437303232333534373632313336372c2265706f636873223a327d', NULL),
	(202611, 2, 'validation', 2, 1, '{3}', '{1795346451091803}', '\x7b226c6f7373223a302e303030373735353932323933363931343637372c2265706f636873223a337d', NULL),
	(202611, 1, 'validation', 2, 1, '{3}', '{1795346451103072}', '\x7b226c6f7373223a302e30303030353634363831353639383431343234352c2265706f636873223a337d', NULL),
	(202611, 2, 'validation', 3, 1, '{4}', '{1795346451130099}', '\x7b226c6f7373223a302e303030353831363934323230323638363030382c2265706f636873223a347d', NULL),
	(202611, 1, 'validation', 3, 1, '{4}', '{1795346451135248}', '\x7b226c6f7373223a302e3030303034323335313131373733383130363833362c2265706f636873223a347d', NULL),
	(202611, 2, 'validation', 4, 1, '{5}', '{1795346451159571}', '\x7b226c6f7373223a302e303030343635333535333736323134383830362c2265706f636873223a357d', NULL),
	(202611, 1, 'validation', 4, 1, '{5}', '{1795346451175617}', '\x7b226c6f7373223a302e30303030333338383038393431393034383534372c2265706f636873223a357d', NULL),
	(202611, 2, 'validation', 5, 1, '{6}', '{1795346451233162}', '\x7b226c6f7373223a302e30303033383737393631343638343537333338352c2265706f636873223a367d', NULL),
	(202611, 1, 'validation', 5, 1, '{6}', '{1795346451256432}', '\x7b226c6f7373223a302e3030303032383233343037383439323037313232352c2265706f636873223a367d', NULL),
	(202611, 2, 'validation', 6, 1, '{7}', '{1795346451275081}', '\x7b226c6f7373223a302e303030333332333936363937323936333433332c2265706f636873223a377d', NULL),
	(202611, 1, 'validation', 6, 1, '{7}', '{1795346451289551}', '\x7b226c6f7373223a302e30303030323432303036333837303734383936322c2265706f636873223a377d', NULL),
	(202611, 2, 'validation', 7, 1, '{8}', '{1795346451307817}', '\x7b226c6f7373223a302e303030323930383437313130313334333030342c2265706f636873223a387d', NULL),
	(202611, 1, 'validation', 7, 1, '{8}', '{1795346451328091}', '\x7b226c6f7373223a302e3030303032313137353535383836393035333431382c2265706f636873223a387d', NULL),
	(202611, 2, 'validation', 8, 1, '{9}', '{1795346451361510}', '\x7b226c6f7373223a302e30303032353835333037363435363338323235352c2265706f636873223a397d', NULL),
	(202611, 1, 'validation', 8, 1, '{9}', '{1795346451371911}', '\x7b226c6f7373223a302e30303030313838323237313839393437313431352c2265706f636873223a397d', NULL),
	(202611, 2, 'validation', 9, 1, '{10}', '{1795346451398658}', '\x7b226c6f7373223a302e303030323332363737363838313037343430332c2265706f636873223a31307d', NULL),
	(202611, 1, 'validation', 9, 1, '{10}', '{1795346451421366}', '\x7b226c6f7373223a302e3030303031363934303434373039353234323733362c2265706f636873223a31307d', NULL),
	(202611, 2, 'validation', 10, 1, '{11}', '{1795346451432504}', '\x7b226c6f7373223a302e30303032313135323531373130303637363339332c2265706f636873223a31317d', NULL),
	(202611, 1, 'validation', 10, 1, '{11}', '{1795346451459113}', '\x7b226c6f7373223a302e3030303031353430303430363435303232303636372c2265706f636873223a31317d', NULL),
	(202611, 2, 'validation', 11, 1, '{12}', '{1795346451472507}', '\x7b226c6f7373223a302e30303031393338393830373334323238363639332c2265706f636873223a31327d', NULL),
	(202611, 1, 'validation', 11, 1, '{12}', '{1795346451495606}', '\x7b226c6f7373223a302e3030303031343131373033393234363033353631332c2265706f636873223a31327d', NULL),
	(202611, 2, 'validation', 12, 1, '{13}', '{1795346451504894}', '\x7b226c6f7373223a302e303030313738393832383337303035373233332c2265706f636873223a31337d', NULL),
	(202611, 1, 'validation', 12, 1, '{13}', '{1795346451527994}', '\x7b226c6f7373223a302e30303030313330333131313331353031383637322c2265706f636873223a31337d', NULL),
	(202611, 2, 'validation', 13, 1, '{14}', '{1795346451536489}', '\x7b226c6f7373223a302e30303031363631393833343836343831373136362c2265706f636873223a31347d', NULL),
	(202611, 1, 'validation', 13, 1, '{14}', '{1795346451553758}', '\x7b226c6f7373223a302e30303030313231303033313933353337343438312c2265706f636873223a31347d', NULL),
	(202611, 2, 'validation', 14, 1, '{15}', '{1795346451566583}', '\x7b226c6f7373223a302e30303031353531313834353837333832393335342c2265706f636873223a31357d', NULL),
	(202611, 1, 'validation', 14, 1, '{15}', '{1795346451588866}', '\x7b226c6f7373223a302e30303030313132393336333133393638323834392c2265706f636873223a31357d', NULL),
	(202611, 2, 'validation', 15, 1, '{16}', '{1795346451604342}', '\x7b226c6f7373223a302e303030313435343233353535303637313530322c2265706f636873223a31367d', NULL),
	(202611, 1, 'validation', 15, 1, '{16}', '{1795346451619575}', '\x7b226c6f7373223a302e3030303031303538373737393433343532363730392c2265706f636873223a31367d', NULL),
	(202611, 3, 'validation', 0, 1, '{1}', '{1795346451963343}', '\x7b226c6f7373223a302e30303031363434393532363435343137313730352c2265706f636873223a317d', NULL),
	(202611, 3, 'validation', 1, 1, '{2}', '{1795346452138617}', '\x7b226c6f7373223a302e30303030383232343736333232373038353835332c2265706f636873223a327d', NULL),
	(202611, 4, 'validation', 0, 1, '{1}', '{1795346452154759}', '\x7b226c6f7373223a302e3034303430323134303530333639363133362c2265706f636873223a317d', NULL),
	(202611, 3, 'validation', 2, 1, '{3}', '{1795346452186929}', '\x7b226c6f7373223a302e30303030353438333137353438343732333930322c2265706f636873223a337d', NULL),
	(202611, 4, 'validation', 1, 1, '{2}', '{1795346452200101}', '\x7b226c6f7373223a302e3032303230313037303235313834383036382c2265706f636873223a327d', NULL),
	(202611, 3, 'validation', 3, 1, '{4}', '{1795346452216148}', '\x7b226c6f7373223a302e3030303034313132333831363133353432393236332c2265706f636873223a347d', NULL),
	(202611, 4, 'validation', 2, 1, '{3}', '{1795346452233966}', '\x7b226c6f7373223a302e3031333436373338303136373839383731322c2265706f636873223a337d', NULL),
	(202611, 3, 'validation', 4, 1, '{5}', '{1795346452248095}', '\x7b226c6f7373223a302e30303030333238393930353239303833343334312c2265706f636873223a357d', NULL),
	(202611, 4, 'validation', 3, 1, '{4}', '{1795346452328738}', '\x7b226c6f7373223a302e3031303130303533353132353932343033342c2265706f636873223a347d', NULL),
	(202611, 3, 'validation', 5, 1, '{6}', '{1795346452346976}', '\x7b226c6f7373223a302e30303030323734313538373734323336313935312c2265706f636873223a367d', NULL),
	(202611, 4, 'validation', 4, 1, '{5}', '{1795346452365933}', '\x7b226c6f7373223a302e3030383038303432383130303733393232372c2265706f636873223a357d', NULL),
	(202611, 3, 'validation', 6, 1, '{7}', '{1795346452389568}', '\x7b226c6f7373223a302e30303030323334393933323335303539353935382c2265706f636873223a377d', NULL),
	(202611, 3, 'validation', 7, 1, '{8}', '{1795346452416271}', '\x7b226c6f7373223a302e3030303032303536313930383036373731343633322c2265706f636873223a387d', NULL),
	(202611, 3, 'validation', 15, 1, '{16}', '{1795346452750597}', '\x7b226c6f7373223a302e3030303031303238303935343033333835373331362c2265706f636873223a31367d', NULL),
	(202611, 6, 'validation', 5, 1, '{6}', '{1795346453537448}', '\x7b226c6f7373223a302e3031303234333134353036303938333230372c2265706f636873223a367d', NULL),
	(202611, 6, 'validation', 6, 1, '{7}', '{1795346453574291}', '\x7b226c6f7373223a302e3030383737393833383632333639393839322c2265706f636873223a377d', NULL),
	(202611, 6, 'validation', 7, 1, '{8}', '{1795346453604080}', '\x7b226c6f7373223a302e3030373638323335383739353733373430352c2265706f636873223a387d', NULL),
	(202611, 6, 'validation', 8, 1, '{9}', '{1795346453714523}', '\x7b226c6f7373223a302e3030363832383736333337333938383830342c2265706f636873223a397d', NULL);
INSERT INTO public.metric_tail_202611 VALUES
	(202611, 6, 'validation', 11, 1, '{12}', '{1795346453811208}', '\x7b226c6f7373223a302e3030353132313537323533303439313630332c2265706f636873223a31327d', NULL),
	(202611, 3, 'validation', 8, 1, '{9}', '{1795346452458396}', '\x7b226c6f7373223a302e30303030313832373732353136313537343633342c2265706f636873223a397d', NULL),
	(202611, 6, 'validation', 2, 1, '{3}', '{1795346453401486}', '\x7b226c6f7373223a302e3032303438363239303132313936363431332c2265706f636873223a337d', NULL),
	(202611, 6, 'validation', 3, 1, '{4}', '{1795346453448512}', '\x7b226c6f7373223a302e30313533363437313735393134373438312c2265706f636873223a347d', NULL),
	(202611, 6, 'validation', 4, 1, '{5}', '{1795346453491646}', '\x7b226c6f7373223a302e3031323239313737343037333137393834382c2265706f636873223a357d', NULL),
	(202611, 6, 'validation', 9, 1, '{10}', '{1795346453742961}', '\x7b226c6f7373223a302e3030363134353838373033363538393932342c2265706f636873223a31307d', NULL),
	(202611, 6, 'validation', 10, 1, '{11}', '{1795346453780104}', '\x7b226c6f7373223a302e3030353538373137303033333236333536372c2265706f636873223a31317d', NULL),
	(202611, 6, 'validation', 13, 1, '{14}', '{1795346453885036}', '\x7b226c6f7373223a302e3030343338393931393331313834393934362c2265706f636873223a31347d', NULL),
	(202611, 6, 'validation', 14, 1, '{15}', '{1795346453917069}', '\x7b226c6f7373223a302e3030343039373235383032343339333238332c2265706f636873223a31357d', NULL),
	(202611, 6, 'validation', 15, 1, '{16}', '{1795346453959739}', '\x7b226c6f7373223a302e303033383431313739333937383638373032352c2265706f636873223a31367d', NULL),
	(202611, 3, 'validation', 9, 1, '{10}', '{1795346452503892}', '\x7b226c6f7373223a302e3030303031363434393532363435343137313730342c2265706f636873223a31307d', NULL),
	(202611, 5, 'validation', 0, 1, '{1}', '{1795346452531143}', '\x7b226c6f7373223a302e303030373331383734383037303536383234362c2265706f636873223a317d', NULL),
	(202611, 3, 'validation', 10, 1, '{11}', '{1795346452550697}', '\x7b226c6f7373223a302e3030303031343935343131343935383333373931342c2265706f636873223a31317d', NULL),
	(202611, 5, 'validation', 1, 1, '{2}', '{1795346452573011}', '\x7b226c6f7373223a302e303030333635393337343033353238343132332c2265706f636873223a327d', NULL),
	(202611, 3, 'validation', 12, 1, '{13}', '{1795346452625893}', '\x7b226c6f7373223a302e3030303031323635333438313838373832343338382c2265706f636873223a31337d', NULL),
	(202611, 6, 'validation', 12, 1, '{13}', '{1795346453853997}', '\x7b226c6f7373223a302e30303437323736303534313237363134382c2265706f636873223a31337d', NULL),
	(202611, 7, 'validation', 0, 1, '{10}', '{1795346455592902}', '\x7b226163637572616379223a302e397d', NULL),
	(202611, 7, 'validation', 1, 1, '{20}', '{1795346455621988}', '\x7b226163637572616379223a302e39357d', NULL),
	(202611, 7, 'validation', 2, 1, '{30}', '{1795346455640700}', '\x7b226163637572616379223a302e393636363636363636363636363636377d', NULL),
	(202611, 3, 'validation', 11, 1, '{12}', '{1795346452592043}', '\x7b226c6f7373223a302e3030303031333730373933383731313830393735352c2265706f636873223a31327d', NULL),
	(202611, 5, 'validation', 2, 1, '{3}', '{1795346452616496}', '\x7b226c6f7373223a302e30303032343339353832363930313839343135322c2265706f636873223a337d', NULL),
	(202611, 5, 'validation', 3, 1, '{4}', '{1795346452646055}', '\x7b226c6f7373223a302e30303031383239363837303137363432303631342c2265706f636873223a347d', NULL),
	(202611, 3, 'validation', 14, 1, '{15}', '{1795346452706927}', '\x7b226c6f7373223a302e3030303031303936363335303936393434373830342c2265706f636873223a31357d', NULL),
	(202611, 3, 'validation', 13, 1, '{14}', '{1795346452665469}', '\x7b226c6f7373223a302e30303030313137343936363137353239373937392c2265706f636873223a31347d', NULL),
	(202611, 5, 'validation', 4, 1, '{5}', '{1795346452673640}', '\x7b226c6f7373223a302e303030313436333734393631343131333634392c2265706f636873223a357d', NULL),
	(202611, 6, 'validation', 0, 1, '{1}', '{1795346452968571}', '\x7b226c6f7373223a302e30363134353838373033363538393932342c2265706f636873223a317d', NULL),
	(202611, 6, 'validation', 1, 1, '{2}', '{1795346453015449}', '\x7b226c6f7373223a302e30333037323934333531383239343936322c2265706f636873223a327d', NULL),
	(202611, 7, 'validation', 3, 1, '{40}', '{1795346455660745}', '\x7b226163637572616379223a302e3937357d', NULL),
	(202611, 7, 'training', 41, 1, '{41}', '{1795346455672964}', '\x7b226c6f7373223a302e3032343339303234333930323433393032352c22626164223a224e614e227d', NULL),
	(202611, 7, 'training', 42, 1, '{42}', '{1795346455674403}', '\x7b226c6f7373223a302e3032333830393532333830393532333830382c22626164223a224e614e227d', NULL),
	(202611, 7, 'training', 43, 1, '{43}', '{1795346455675658}', '\x7b226c6f7373223a302e3032333235353831333935333438383337322c22626164223a224e614e227d', NULL),
	(202611, 7, 'training', 44, 1, '{44}', '{1795346455680097}', '\x7b226c6f7373223a302e3032323732373237323732373237323732382c22626164223a224e614e227d', NULL),
	(202611, 7, 'training', 45, 1, '{45}', '{1795346455681760}', '\x7b226c6f7373223a302e3032323232323232323232323232323232332c22626164223a224e614e227d', NULL),
	(202611, 8, 'validation', 0, 1, '{1}', '{1795346455683259}', '\x7b226163637572616379223a302e317d', NULL),
	(202611, 8, 'validation', 1, 1, '{2}', '{1795346455687243}', '\x7b226163637572616379223a302e327d', NULL),
	(202611, 8, 'validation', 2, 1, '{3}', '{1795346455690198}', '\x7b226163637572616379223a302e337d', NULL),
	(202611, 8, 'validation', 3, 1, '{4}', '{1795346455694049}', '\x7b226163637572616379223a302e347d', NULL),
	(202611, 8, 'validation', 4, 1, '{5}', '{1795346455697222}', '\x7b226163637572616379223a302e357d', NULL),
	(202611, 8, 'validation', 5, 1, '{6}', '{1795346455699735}', '\x7b226163637572616379223a302e367d', NULL),
	(202611, 8, 'validation', 6, 1, '{7}', '{1795346455702287}', '\x7b226163637572616379223a302e377d', NULL),
	(202611, 8, 'validation', 7, 2, '{5}', '{1795346455707166}', '\x7b226163637572616379223a302e397d', NULL),
	(202611, 7, 'training', 46, 1, '{46}', '{1790000000000000}', '\x7b226c6f7373223a302e30327d', NULL);

INSERT INTO public.model_versions VALUES
	(1, 1, 1, '0d6e4079-4c8e-4f5f-9a39-2f4e2b1c0002', '', '', '', '{}', '{}', 2, '2026-11-22 11:20:55.237212+00', '2026-11-22 11:20:55.237212+00');

INSERT INTO public.models VALUES
	(2, 'archived_model', '', '', '{}', '{}', 1, 2, true, 0, '2026-11-22 11:20:55.23275+00', '2026-11-22 11:20:55.234786+00'),
	(1, 'model', 'the best', '', '{m}', '{"k": 1}', 1, 2, false, 1, '2026-11-22 11:20:55.229926+00', '2026-11-22 11:20:55.871291+00');

INSERT INTO public.pool_bindings VALUES
	('gpus', 2, '2026-11-22 11:20:55.959106+00');

INSERT INTO public.project_counters VALUES
	(2, 4),
	(1, 11);

INSERT INTO public.projects VALUES
	(1, 1, 'Uncategorized', '', NULL, true, false, '2026-11-22 11:20:49.228185+00', 'ACTIVE', '', 'UNC', '[]'),
	(2, 2, 'project', '', 2, false, false, '2026-11-22 11:20:55.217255+00', 'ACTIVE', '', 'PRO', '[]'),
	(3, 2, 'empty_project', '', 2, false, false, '2026-11-22 11:20:55.220731+00', 'ACTIVE', '', 'EMP', '[]'),
	(4, 2, 'archived_project', '', 2, false, true, '2026-11-22 11:20:55.222966+00', 'ACTIVE', '', 'ARC', '[]');

INSERT INTO public.removals VALUES
	('50e19c95-9e66-4246-bc95-732a6d9cfb6e', '50e19c95-9e66-4246-bc95-732a6d9cfb6e', NULL, '{**/*}', '2nd of the experiment and 2nd of its trial by loss, 2nd latest of its trial; kept are the best 0 of the experiment, the best 1 and the latest 1 of each trial', '2026-11-22 11:20:51.862818+00', '2026-11-22 11:20:51.90444+00', 1, '2026-11-22 11:20:57.476876+00', 'task 728809f3-c264-4759-aec9-aac1d542b18c, which was to delete it on an agent, has ended: it ended with exit code 1', false, NULL),
	('b7d61129-515e-476f-9167-a6162eeb8227', 'b7d61129-515e-476f-9167-a6162eeb8227', NULL, '{**/*}', '3rd of the experiment and 2nd of its trial by loss, 2nd latest of its trial; kept are the best 0 of the experiment, the best 1 and the latest 1 of each trial', '2026-11-22 11:20:51.620928+00', '2026-11-22 11:20:51.662566+00', 1, '2026-11-22 11:20:57.476876+00', 'task 85deac47-dc32-4c9d-bdf9-7908a333f9f0, which was to delete it on an agent, has ended: it ended with exit code 1', false, NULL),
	('b884ddda-184b-4379-b090-efaf671c708c', 'b884ddda-184b-4379-b090-efaf671c708c', NULL, '{**/*}', '3rd of the experiment and 2nd of its trial by loss, 2nd latest of its trial; kept are the best 0 of the experiment, the best 1 and the latest 1 of each trial', '2026-11-22 11:20:52.816712+00', '2026-11-22 11:20:52.907125+00', 1, '2026-11-22 11:20:58.698231+00', 'task 08cca5f4-e063-4c73-86f7-23b5d71d0bed, which was to delete it on an agent, has ended: it ended with exit code 1', false, NULL),
	('6fcebd65-9f08-465c-9a74-49fa8f07c51f', '6fcebd65-9f08-465c-9a74-49fa8f07c51f', NULL, '{**/*}', '5th of the experiment and 2nd of its trial by loss, 2nd latest of its trial; kept are the best 0 of the experiment, the best 1 and the latest 1 of each trial', '2026-11-22 11:20:54.070202+00', '2026-11-22 11:20:54.093459+00', 0, '2026-11-22 11:20:54.092043+00', 'the master cannot reach /srv/more: mount it on the master''s machine, or delete the files yourself', true, '1c4cf360-25fd-480b-8c17-333dda853539');

INSERT INTO public.removed_agents VALUES
	('three', 1, '2026-11-22 11:20:55.956609+00');

INSERT INTO public.rendezvous_members VALUES
	('e045fd34-3f29-4f25-8a52-0b430645f2e1', '2.00000000-0000-0000-0000-000000000001.1', '2026-11-22 11:20:55.768122+00');

INSERT INTO public.run_hparams VALUES
	(1, 'lr', NULL, 0.00016940447095242734, NULL, NULL),
	(1, 'net.name', NULL, NULL, NULL, 'small'),
	(1, 'net.wide', NULL, NULL, true, NULL),
	(1, 'net.depth', NULL, 3, NULL, NULL),
	(2, 'lr', NULL, 0.002326776881074403, NULL, NULL),
	(2, 'net.name', NULL, NULL, NULL, 'small'),
	(2, 'net.wide', NULL, NULL, true, NULL),
	(2, 'net.depth', NULL, 3, NULL, NULL),
	(3, 'lr', NULL, 0.00016449526454171705, NULL, NULL),
	(3, 'net.name', NULL, NULL, NULL, 'small'),
	(3, 'net.wide', NULL, NULL, true, NULL),
	(3, 'net.depth', NULL, 3, NULL, NULL),
	(4, 'lr', NULL, 0.040402140503696136, NULL, NULL),
	(4, 'net.name', NULL, NULL, NULL, 'small'),
	(4, 'net.wide', NULL, NULL, true, NULL),
	(4, 'net.depth', NULL, 3, NULL, NULL),
	(5, 'lr', NULL, 0.0007318748070568246, NULL, NULL),
	(5, 'net.name', NULL, NULL, NULL, 'small'),
	(5, 'net.wide', NULL, NULL, true, NULL),
	(5, 'net.depth', NULL, 3, NULL, NULL),
	(6, 'lr', NULL, 0.06145887036589924, NULL, NULL),
	(6, 'net.name', NULL, NULL, NULL, 'small'),
	(6, 'net.wide', NULL, NULL, true, NULL),
	(6, 'net.depth', NULL, 3, NULL, NULL),
	(7, 'lr', NULL, 0.1, NULL, NULL),
	(8, 'lr', NULL, 0.1, NULL, NULL),
	(9, 'lr', NULL, 0.1, NULL, NULL),
	(10, 'lr', NULL, 0.1, NULL, NULL),
	(11, 'lr', NULL, 0.1, NULL, NULL),
	(12, 'lr', NULL, 0.1, NULL, NULL),
	(13, 'lr', NULL, 0.1, NULL, NULL),
	(15, 'lr', NULL, 0.1, NULL, NULL);

INSERT INTO public.run_metadata VALUES
	(7, '{"f": 0.5, "n": 1, "deep": {"b": true, "t": "2026-01-02T03:04:05Z"}, "list": [1, "x"], "team": "a"}', '2026-11-22 11:20:55.783021+00');

INSERT INTO public.run_metadata_index VALUES
	(8, 7, 'team', false, NULL, NULL, NULL, 'a', NULL),
	(9, 7, 'n', false, 1, NULL, NULL, NULL, NULL),
	(10, 7, 'f', false, NULL, 0.5, NULL, NULL, NULL),
	(11, 7, 'list', true, 1, NULL, NULL, NULL, NULL),
	(12, 7, 'list', true, NULL, NULL, NULL, 'x', NULL),
	(13, 7, 'deep.b', false, NULL, NULL, true, NULL, NULL),
	(14, 7, 'deep.t', false, NULL, NULL, NULL, NULL, '2026-01-02 03:04:05+00');

INSERT INTO public.run_numbers VALUES
	(1, 1, 1),
	(2, 1, 2),
	(3, 1, 3),
	(4, 1, 4),
	(5, 1, 5),
	(6, 1, 6),
	(7, 1, 7),
	(8, 1, 8),
	(9, 1, 9),
	(10, 2, 1),
	(11, 2, 2),
	(12, 2, 3),
	(13, 2, 4),
	(14, 1, 10),
	(15, 1, 11);

INSERT INTO public.schema_migrations VALUES
	('0001_pre_state', '2d1c38ebdad2cffe9fde0ffdf40b6a81d2321589b05690c4a310c44f4dd8a681', '2026-11-22 11:20:48.866765+00'),
	('0002_pre_telemetry', '767aec71f9e6dded80ecf2a184d77679e47ee4670f46147d9b446aef4b61957f', '2026-11-22 11:20:48.94034+00'),
	('0003_pre_accelerators', '97eeae6ab01d26701f7c605f64eaacd90ccf67d865ce6a97cb62b914699a90e6', '2026-11-22 11:20:48.977002+00'),
	('0004_pre_garbage', 'cd2f083e9afea47a52d31df76c6ac4285c6cd79daa77f78cc6a0647501da6e0e', '2026-11-22 11:20:48.981446+00'),
	('0005_pre_launched_tasks', '870aa24df7bccadb20b82262d5c7c29b44740e19bc627595f58ac1d66fea9434', '2026-11-22 11:20:48.987558+00'),
	('0006_pre_machines', 'adfe0962390a285d19c8f1a5f254bce7b835b9ddce8c459e0067a6551bd15101', '2026-11-22 11:20:48.991989+00'),
	('0007_pre_experiments', '70d97b730596136ae3bc48b51a090cf89144e334bd0945a4bb4fbef6b79e8b50', '2026-11-22 11:20:49.004856+00'),
	('0008_pre_runs', 'f8881a3415464f0e1971da1106b274dc932190558cd2d120ecae515f7eda6408', '2026-11-22 11:20:49.013521+00'),
	('0009_pre_workspaces', '2d689a4f72635d805661a918a8330c4249619f43d7de640ad55c9d449624cd48', '2026-11-22 11:20:49.029429+00'),
	('0010_pre_access', 'adeec17a26df6428cbadfaf84a4fa9b781dd7efaffc8977d11ccd9b325652fc5', '2026-11-22 11:20:49.043339+00'),
	('0011_pre_unmanaged', '0bc7622f99904d991939a1fe756a7534daa15922a534750061d569524729c670', '2026-11-22 11:20:49.059338+00'),
	('0012_pre_leaving', 'b1973f1df49a49ce0fe20d5a42c32b963928b80b71c2232227838a8e5b52e62b', '2026-11-22 11:20:49.062733+00'),
	('0013_pre_cheaper', 'a6889e5c05dc7d143b34060a1adf7f92ead90eb0916848fb1937b46b22d57dbb', '2026-11-22 11:20:49.063464+00'),
	('0014_pre_counts', '4b1c8592ae49737e1e2fbe1cdfe06ced2a864f44751745f24096f30d261e9960', '2026-11-22 11:20:49.064805+00');

INSERT INTO public.search_inbox VALUES
	(1, 1, 1, 'validation', 1, '{"v": 1, "step": 1, "time": 1.0, "type": "validated", "metric": 0.00016940447095242734, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 5, '2026-11-22 11:20:50.929064+00'),
	(2, 1, 2, 'validation', 1, '{"v": 1, "step": 1, "time": 1.0, "type": "validated", "metric": 0.002326776881074403, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 6, '2026-11-22 11:20:50.929064+00'),
	(3, 1, 2, 'validation', 2, '{"v": 1, "step": 2, "time": 2.0, "type": "validated", "metric": 0.0011633884405372016, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 7, '2026-11-22 11:20:51.016352+00'),
	(4, 1, 1, 'validation', 2, '{"v": 1, "step": 2, "time": 2.0, "type": "validated", "metric": 0.00008470223547621367, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 8, '2026-11-22 11:20:51.068799+00'),
	(5, 1, 2, 'validation', 3, '{"v": 1, "step": 3, "time": 3.0, "type": "validated", "metric": 0.0007755922936914677, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 9, '2026-11-22 11:20:51.091803+00'),
	(6, 1, 1, 'validation', 3, '{"v": 1, "step": 3, "time": 3.0, "type": "validated", "metric": 0.00005646815698414245, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 10, '2026-11-22 11:20:51.103072+00'),
	(7, 1, 2, 'validation', 4, '{"v": 1, "step": 4, "time": 4.0, "type": "validated", "metric": 0.0005816942202686008, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 11, '2026-11-22 11:20:51.130099+00'),
	(8, 1, 1, 'validation', 4, '{"v": 1, "step": 4, "time": 4.0, "type": "validated", "metric": 0.000042351117738106836, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 13, '2026-11-22 11:20:51.135248+00'),
	(9, 1, 2, 'validation', 5, '{"v": 1, "step": 5, "time": 5.0, "type": "validated", "metric": 0.0004653553762148806, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 15, '2026-11-22 11:20:51.159571+00'),
	(10, 1, 1, 'validation', 5, '{"v": 1, "step": 5, "time": 5.0, "type": "validated", "metric": 0.00003388089419048547, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 16, '2026-11-22 11:20:51.175617+00'),
	(11, 1, 2, 'validation', 6, '{"v": 1, "step": 6, "time": 6.0, "type": "validated", "metric": 0.00038779614684573385, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 17, '2026-11-22 11:20:51.233162+00'),
	(12, 1, 1, 'validation', 6, '{"v": 1, "step": 6, "time": 6.0, "type": "validated", "metric": 0.000028234078492071225, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 18, '2026-11-22 11:20:51.256432+00'),
	(13, 1, 2, 'validation', 7, '{"v": 1, "step": 7, "time": 7.0, "type": "validated", "metric": 0.0003323966972963433, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 19, '2026-11-22 11:20:51.275081+00'),
	(14, 1, 1, 'validation', 7, '{"v": 1, "step": 7, "time": 7.0, "type": "validated", "metric": 0.00002420063870748962, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 20, '2026-11-22 11:20:51.289551+00'),
	(15, 1, 2, 'validation', 8, '{"v": 1, "step": 8, "time": 8.0, "type": "validated", "metric": 0.0002908471101343004, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 21, '2026-11-22 11:20:51.307817+00'),
	(16, 1, 1, 'validation', 8, '{"v": 1, "step": 8, "time": 8.0, "type": "validated", "metric": 0.000021175558869053418, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 22, '2026-11-22 11:20:51.328091+00'),
	(17, 1, 2, 'validation', 9, '{"v": 1, "step": 9, "time": 9.0, "type": "validated", "metric": 0.00025853076456382255, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 23, '2026-11-22 11:20:51.36151+00'),
	(18, 1, 1, 'validation', 9, '{"v": 1, "step": 9, "time": 9.0, "type": "validated", "metric": 0.00001882271899471415, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 24, '2026-11-22 11:20:51.371911+00'),
	(19, 1, 2, 'validation', 10, '{"v": 1, "step": 10, "time": 10.0, "type": "validated", "metric": 0.0002326776881074403, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 25, '2026-11-22 11:20:51.398658+00'),
	(20, 1, 1, 'validation', 10, '{"v": 1, "step": 10, "time": 10.0, "type": "validated", "metric": 0.000016940447095242736, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 26, '2026-11-22 11:20:51.421366+00'),
	(21, 1, 2, 'validation', 11, '{"v": 1, "step": 11, "time": 11.0, "type": "validated", "metric": 0.00021152517100676393, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 27, '2026-11-22 11:20:51.432504+00'),
	(22, 1, 1, 'validation', 11, '{"v": 1, "step": 11, "time": 11.0, "type": "validated", "metric": 0.000015400406450220667, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 28, '2026-11-22 11:20:51.459113+00'),
	(23, 1, 2, 'validation', 12, '{"v": 1, "step": 12, "time": 12.0, "type": "validated", "metric": 0.00019389807342286693, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 29, '2026-11-22 11:20:51.472507+00'),
	(24, 1, 1, 'validation', 12, '{"v": 1, "step": 12, "time": 12.0, "type": "validated", "metric": 0.000014117039246035613, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 30, '2026-11-22 11:20:51.495606+00'),
	(25, 1, 2, 'validation', 13, '{"v": 1, "step": 13, "time": 13.0, "type": "validated", "metric": 0.0001789828370057233, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 31, '2026-11-22 11:20:51.504894+00'),
	(26, 1, 1, 'validation', 13, '{"v": 1, "step": 13, "time": 13.0, "type": "validated", "metric": 0.00001303111315018672, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 32, '2026-11-22 11:20:51.527994+00'),
	(27, 1, 2, 'validation', 14, '{"v": 1, "step": 14, "time": 14.0, "type": "validated", "metric": 0.00016619834864817166, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 33, '2026-11-22 11:20:51.536489+00'),
	(28, 1, 1, 'validation', 14, '{"v": 1, "step": 14, "time": 14.0, "type": "validated", "metric": 0.00001210031935374481, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 34, '2026-11-22 11:20:51.553758+00'),
	(32, 1, 1, 'validation', 16, '{"v": 1, "step": 16, "time": 16.0, "type": "validated", "metric": 0.000010587779434526709, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 41, '2026-11-22 11:20:51.619575+00'),
	(29, 1, 2, 'validation', 15, '{"v": 1, "step": 15, "time": 15.0, "type": "validated", "metric": 0.00015511845873829354, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 35, '2026-11-22 11:20:51.566583+00'),
	(30, 1, 1, 'validation', 15, '{"v": 1, "step": 15, "time": 15.0, "type": "validated", "metric": 0.00001129363139682849, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 36, '2026-11-22 11:20:51.588866+00'),
	(31, 1, 2, 'validation', 16, '{"v": 1, "step": 16, "time": 16.0, "type": "validated", "metric": 0.0001454235550671502, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 37, '2026-11-22 11:20:51.604342+00'),
	(33, 1, 2, 'exit', 1, '{"v": 1, "type": "exited", "reason": "finished", "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', 45, '2026-11-22 11:20:51.639858+00'),
	(34, 1, 1, 'exit', 1, '{"v": 1, "type": "exited", "reason": "finished", "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', 46, '2026-11-22 11:20:51.756401+00'),
	(35, 1, 3, 'validation', 1, '{"v": 1, "step": 1, "time": 1.0, "type": "validated", "metric": 0.00016449526454171705, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 47, '2026-11-22 11:20:51.963343+00'),
	(36, 1, 3, 'validation', 2, '{"v": 1, "step": 2, "time": 2.0, "type": "validated", "metric": 0.00008224763227085853, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 48, '2026-11-22 11:20:52.138617+00'),
	(37, 1, 4, 'validation', 1, '{"v": 1, "step": 1, "time": 1.0, "type": "validated", "metric": 0.040402140503696136, "request_id": "87e1b154-ac5b-4561-80de-97644b34e110"}', 49, '2026-11-22 11:20:52.154759+00'),
	(38, 1, 3, 'validation', 3, '{"v": 1, "step": 3, "time": 3.0, "type": "validated", "metric": 0.00005483175484723902, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 50, '2026-11-22 11:20:52.186929+00'),
	(39, 1, 4, 'validation', 2, '{"v": 1, "step": 2, "time": 2.0, "type": "validated", "metric": 0.020201070251848068, "request_id": "87e1b154-ac5b-4561-80de-97644b34e110"}', 51, '2026-11-22 11:20:52.200101+00'),
	(40, 1, 3, 'validation', 4, '{"v": 1, "step": 4, "time": 4.0, "type": "validated", "metric": 0.000041123816135429263, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 52, '2026-11-22 11:20:52.216148+00'),
	(41, 1, 4, 'validation', 3, '{"v": 1, "step": 3, "time": 3.0, "type": "validated", "metric": 0.013467380167898712, "request_id": "87e1b154-ac5b-4561-80de-97644b34e110"}', 53, '2026-11-22 11:20:52.233966+00'),
	(42, 1, 3, 'validation', 5, '{"v": 1, "step": 5, "time": 5.0, "type": "validated", "metric": 0.00003289905290834341, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 54, '2026-11-22 11:20:52.248095+00'),
	(43, 1, 4, 'validation', 4, '{"v": 1, "step": 4, "time": 4.0, "type": "validated", "metric": 0.010100535125924034, "request_id": "87e1b154-ac5b-4561-80de-97644b34e110"}', 55, '2026-11-22 11:20:52.328738+00'),
	(44, 1, 3, 'validation', 6, '{"v": 1, "step": 6, "time": 6.0, "type": "validated", "metric": 0.00002741587742361951, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 58, '2026-11-22 11:20:52.346976+00'),
	(48, 1, 4, 'exit', 1, '{"v": 1, "type": "exited", "reason": "finished", "request_id": "87e1b154-ac5b-4561-80de-97644b34e110"}', 61, '2026-11-22 11:20:52.413035+00'),
	(49, 1, 3, 'validation', 9, '{"v": 1, "step": 9, "time": 9.0, "type": "validated", "metric": 0.00001827725161574634, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 62, '2026-11-22 11:20:52.458396+00'),
	(50, 1, 3, 'validation', 10, '{"v": 1, "step": 10, "time": 10.0, "type": "validated", "metric": 0.000016449526454171704, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 63, '2026-11-22 11:20:52.503892+00'),
	(54, 1, 3, 'validation', 12, '{"v": 1, "step": 12, "time": 12.0, "type": "validated", "metric": 0.000013707938711809755, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 67, '2026-11-22 11:20:52.592043+00'),
	(55, 1, 5, 'validation', 3, '{"v": 1, "step": 3, "time": 3.0, "type": "validated", "metric": 0.00024395826901894152, "request_id": "131fdbe8-bc0d-4cb1-ac6c-a036bfae9158"}', 68, '2026-11-22 11:20:52.616496+00'),
	(57, 1, 5, 'validation', 4, '{"v": 1, "step": 4, "time": 4.0, "type": "validated", "metric": 0.00018296870176420614, "request_id": "131fdbe8-bc0d-4cb1-ac6c-a036bfae9158"}', 70, '2026-11-22 11:20:52.646055+00');
INSERT INTO public.search_inbox VALUES
	(58, 1, 3, 'validation', 14, '{"v": 1, "step": 14, "time": 14.0, "type": "validated", "metric": 0.00001174966175297979, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 73, '2026-11-22 11:20:52.665469+00'),
	(59, 1, 5, 'validation', 5, '{"v": 1, "step": 5, "time": 5.0, "type": "validated", "metric": 0.0001463749614113649, "request_id": "131fdbe8-bc0d-4cb1-ac6c-a036bfae9158"}', 73, '2026-11-22 11:20:52.67364+00'),
	(60, 1, 3, 'validation', 15, '{"v": 1, "step": 15, "time": 15.0, "type": "validated", "metric": 0.000010966350969447804, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 74, '2026-11-22 11:20:52.706927+00'),
	(63, 1, 3, 'exit', 1, '{"v": 1, "type": "exited", "reason": "finished", "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 80, '2026-11-22 11:20:52.814345+00'),
	(64, 1, 6, 'validation', 1, '{"v": 1, "step": 1, "time": 1.0, "type": "validated", "metric": 0.06145887036589924, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 81, '2026-11-22 11:20:52.968571+00'),
	(65, 1, 6, 'validation', 2, '{"v": 1, "step": 2, "time": 2.0, "type": "validated", "metric": 0.03072943518294962, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 82, '2026-11-22 11:20:53.015449+00'),
	(66, 1, 6, 'validation', 3, '{"v": 1, "step": 3, "time": 3.0, "type": "validated", "metric": 0.020486290121966413, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 83, '2026-11-22 11:20:53.401486+00'),
	(67, 1, 6, 'validation', 4, '{"v": 1, "step": 4, "time": 4.0, "type": "validated", "metric": 0.01536471759147481, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 84, '2026-11-22 11:20:53.448512+00'),
	(68, 1, 6, 'validation', 5, '{"v": 1, "step": 5, "time": 5.0, "type": "validated", "metric": 0.012291774073179848, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 85, '2026-11-22 11:20:53.491646+00'),
	(45, 1, 4, 'validation', 5, '{"v": 1, "step": 5, "time": 5.0, "type": "validated", "metric": 0.008080428100739227, "request_id": "87e1b154-ac5b-4561-80de-97644b34e110"}', 58, '2026-11-22 11:20:52.365933+00'),
	(46, 1, 3, 'validation', 7, '{"v": 1, "step": 7, "time": 7.0, "type": "validated", "metric": 0.00002349932350595958, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 59, '2026-11-22 11:20:52.389568+00'),
	(47, 1, 3, 'validation', 8, '{"v": 1, "step": 8, "time": 8.0, "type": "validated", "metric": 0.000020561908067714632, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 60, '2026-11-22 11:20:52.416271+00'),
	(61, 1, 5, 'exit', 1, '{"v": 1, "type": "exited", "reason": "finished", "request_id": "131fdbe8-bc0d-4cb1-ac6c-a036bfae9158"}', 75, '2026-11-22 11:20:52.723418+00'),
	(62, 1, 3, 'validation', 16, '{"v": 1, "step": 16, "time": 16.0, "type": "validated", "metric": 0.000010280954033857316, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 76, '2026-11-22 11:20:52.750597+00'),
	(69, 1, 6, 'validation', 6, '{"v": 1, "step": 6, "time": 6.0, "type": "validated", "metric": 0.010243145060983207, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 86, '2026-11-22 11:20:53.537448+00'),
	(70, 1, 6, 'validation', 7, '{"v": 1, "step": 7, "time": 7.0, "type": "validated", "metric": 0.008779838623699892, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 87, '2026-11-22 11:20:53.574291+00'),
	(71, 1, 6, 'validation', 8, '{"v": 1, "step": 8, "time": 8.0, "type": "validated", "metric": 0.007682358795737405, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 88, '2026-11-22 11:20:53.60408+00'),
	(72, 1, 6, 'validation', 9, '{"v": 1, "step": 9, "time": 9.0, "type": "validated", "metric": 0.006828763373988804, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 89, '2026-11-22 11:20:53.714523+00'),
	(75, 1, 6, 'validation', 12, '{"v": 1, "step": 12, "time": 12.0, "type": "validated", "metric": 0.005121572530491603, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 92, '2026-11-22 11:20:53.811208+00'),
	(51, 1, 5, 'validation', 1, '{"v": 1, "step": 1, "time": 1.0, "type": "validated", "metric": 0.0007318748070568246, "request_id": "131fdbe8-bc0d-4cb1-ac6c-a036bfae9158"}', 64, '2026-11-22 11:20:52.531143+00'),
	(52, 1, 3, 'validation', 11, '{"v": 1, "step": 11, "time": 11.0, "type": "validated", "metric": 0.000014954114958337914, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 65, '2026-11-22 11:20:52.550697+00'),
	(53, 1, 5, 'validation', 2, '{"v": 1, "step": 2, "time": 2.0, "type": "validated", "metric": 0.0003659374035284123, "request_id": "131fdbe8-bc0d-4cb1-ac6c-a036bfae9158"}', 66, '2026-11-22 11:20:52.573011+00'),
	(56, 1, 3, 'validation', 13, '{"v": 1, "step": 13, "time": 13.0, "type": "validated", "metric": 0.000012653481887824388, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', 69, '2026-11-22 11:20:52.625893+00'),
	(76, 1, 6, 'validation', 13, '{"v": 1, "step": 13, "time": 13.0, "type": "validated", "metric": 0.00472760541276148, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 93, '2026-11-22 11:20:53.853997+00'),
	(81, 2, 7, 'validation', 10, '{"v": 1, "step": 10, "time": 0.0, "type": "validated", "metric": 0.9, "request_id": "00000000-0000-0000-0000-000000000001"}', NULL, '2026-11-22 11:20:55.592902+00'),
	(82, 2, 7, 'validation', 20, '{"v": 1, "step": 20, "time": 0.0, "type": "validated", "metric": 0.95, "request_id": "00000000-0000-0000-0000-000000000001"}', NULL, '2026-11-22 11:20:55.621988+00'),
	(83, 2, 7, 'validation', 30, '{"v": 1, "step": 30, "time": 0.0, "type": "validated", "metric": 0.9666666666666667, "request_id": "00000000-0000-0000-0000-000000000001"}', NULL, '2026-11-22 11:20:55.6407+00'),
	(84, 2, 7, 'validation', 40, '{"v": 1, "step": 40, "time": 0.0, "type": "validated", "metric": 0.975, "request_id": "00000000-0000-0000-0000-000000000001"}', NULL, '2026-11-22 11:20:55.660745+00'),
	(85, 3, 8, 'validation', 1, '{"v": 1, "step": 1, "time": 0.0, "type": "validated", "metric": 0.1, "request_id": "00000000-0000-0000-0000-000000000001"}', NULL, '2026-11-22 11:20:55.683259+00'),
	(86, 3, 8, 'validation', 2, '{"v": 1, "step": 2, "time": 0.0, "type": "validated", "metric": 0.2, "request_id": "00000000-0000-0000-0000-000000000001"}', NULL, '2026-11-22 11:20:55.687243+00'),
	(87, 3, 8, 'validation', 3, '{"v": 1, "step": 3, "time": 0.0, "type": "validated", "metric": 0.3, "request_id": "00000000-0000-0000-0000-000000000001"}', NULL, '2026-11-22 11:20:55.690198+00'),
	(88, 3, 8, 'validation', 4, '{"v": 1, "step": 4, "time": 0.0, "type": "validated", "metric": 0.4, "request_id": "00000000-0000-0000-0000-000000000001"}', NULL, '2026-11-22 11:20:55.694049+00'),
	(89, 3, 8, 'validation', 5, '{"v": 1, "step": 5, "time": 0.0, "type": "validated", "metric": 0.5, "request_id": "00000000-0000-0000-0000-000000000001"}', NULL, '2026-11-22 11:20:55.697222+00'),
	(90, 3, 8, 'validation', 6, '{"v": 1, "step": 6, "time": 0.0, "type": "validated", "metric": 0.6, "request_id": "00000000-0000-0000-0000-000000000001"}', NULL, '2026-11-22 11:20:55.699735+00'),
	(91, 3, 8, 'validation', 7, '{"v": 1, "step": 7, "time": 0.0, "type": "validated", "metric": 0.7, "request_id": "00000000-0000-0000-0000-000000000001"}', NULL, '2026-11-22 11:20:55.702287+00'),
	(73, 1, 6, 'validation', 10, '{"v": 1, "step": 10, "time": 10.0, "type": "validated", "metric": 0.006145887036589924, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 90, '2026-11-22 11:20:53.742961+00'),
	(74, 1, 6, 'validation', 11, '{"v": 1, "step": 11, "time": 11.0, "type": "validated", "metric": 0.005587170033263567, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 91, '2026-11-22 11:20:53.780104+00'),
	(77, 1, 6, 'validation', 14, '{"v": 1, "step": 14, "time": 14.0, "type": "validated", "metric": 0.004389919311849946, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 94, '2026-11-22 11:20:53.885036+00'),
	(78, 1, 6, 'validation', 15, '{"v": 1, "step": 15, "time": 15.0, "type": "validated", "metric": 0.004097258024393283, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 95, '2026-11-22 11:20:53.917069+00'),
	(79, 1, 6, 'validation', 16, '{"v": 1, "step": 16, "time": 16.0, "type": "validated", "metric": 0.0038411793978687025, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 96, '2026-11-22 11:20:53.959739+00'),
	(80, 1, 6, 'exit', 1, '{"v": 1, "type": "exited", "reason": "finished", "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', 99, '2026-11-22 11:20:54.007739+00');

INSERT INTO public.search_journal VALUES
	(1, 1, '{"v": 1, "seed": 7, "type": "started"}', '2026-11-22 11:20:50.765343+00'),
	(1, 2, '{"v": 1, "seed": 959775639, "type": "create", "bracket": 0, "hparams": {"lr": 0.00016940447095242734, "net": {"name": "small", "wide": true, "depth": 3}}, "position": 7, "replaces": null, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:50.765343+00'),
	(1, 3, '{"v": 1, "seed": 372560217, "type": "create", "bracket": 0, "hparams": {"lr": 0.002326776881074403, "net": {"name": "small", "wide": true, "depth": 3}}, "position": 14, "replaces": null, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:50.765343+00'),
	(1, 4, '{"v": 1, "seed": 769786948, "type": "create", "bracket": 1, "hparams": {"lr": 0.00016449526454171705, "net": {"name": "small", "wide": true, "depth": 3}}, "position": 21, "replaces": null, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:50.765343+00'),
	(1, 5, '{"v": 1, "step": 1, "time": 1.0, "type": "validated", "metric": 0.00016940447095242734, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:50.996249+00'),
	(1, 6, '{"v": 1, "step": 1, "time": 1.0, "type": "validated", "metric": 0.002326776881074403, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:50.996249+00'),
	(1, 7, '{"v": 1, "step": 2, "time": 2.0, "type": "validated", "metric": 0.0011633884405372016, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.069354+00'),
	(1, 8, '{"v": 1, "step": 2, "time": 2.0, "type": "validated", "metric": 0.00008470223547621367, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.084712+00'),
	(1, 9, '{"v": 1, "step": 3, "time": 3.0, "type": "validated", "metric": 0.0007755922936914677, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.10307+00'),
	(1, 10, '{"v": 1, "step": 3, "time": 3.0, "type": "validated", "metric": 0.00005646815698414245, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.10307+00'),
	(1, 11, '{"v": 1, "step": 4, "time": 4.0, "type": "validated", "metric": 0.0005816942202686008, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.14049+00'),
	(1, 12, '{"v": 1, "rung": 0, "type": "rank", "value": 0.0005816942202686008, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.14049+00'),
	(1, 13, '{"v": 1, "step": 4, "time": 4.0, "type": "validated", "metric": 0.000042351117738106836, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.14049+00'),
	(1, 14, '{"v": 1, "rung": 0, "type": "rank", "value": 0.000042351117738106836, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.14049+00'),
	(1, 15, '{"v": 1, "step": 5, "time": 5.0, "type": "validated", "metric": 0.0004653553762148806, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.17638+00'),
	(1, 16, '{"v": 1, "step": 5, "time": 5.0, "type": "validated", "metric": 0.00003388089419048547, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.232468+00'),
	(1, 17, '{"v": 1, "step": 6, "time": 6.0, "type": "validated", "metric": 0.00038779614684573385, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.260882+00'),
	(1, 18, '{"v": 1, "step": 6, "time": 6.0, "type": "validated", "metric": 0.000028234078492071225, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.260882+00'),
	(1, 19, '{"v": 1, "step": 7, "time": 7.0, "type": "validated", "metric": 0.0003323966972963433, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.297947+00'),
	(1, 20, '{"v": 1, "step": 7, "time": 7.0, "type": "validated", "metric": 0.00002420063870748962, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.297947+00'),
	(1, 21, '{"v": 1, "step": 8, "time": 8.0, "type": "validated", "metric": 0.0002908471101343004, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.336094+00'),
	(1, 22, '{"v": 1, "step": 8, "time": 8.0, "type": "validated", "metric": 0.000021175558869053418, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.336094+00'),
	(1, 23, '{"v": 1, "step": 9, "time": 9.0, "type": "validated", "metric": 0.00025853076456382255, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.369686+00'),
	(1, 24, '{"v": 1, "step": 9, "time": 9.0, "type": "validated", "metric": 0.00001882271899471415, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.40105+00'),
	(1, 25, '{"v": 1, "step": 10, "time": 10.0, "type": "validated", "metric": 0.0002326776881074403, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.40105+00'),
	(1, 26, '{"v": 1, "step": 10, "time": 10.0, "type": "validated", "metric": 0.000016940447095242736, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.438699+00'),
	(1, 27, '{"v": 1, "step": 11, "time": 11.0, "type": "validated", "metric": 0.00021152517100676393, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.444723+00'),
	(1, 28, '{"v": 1, "step": 11, "time": 11.0, "type": "validated", "metric": 0.000015400406450220667, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.476233+00'),
	(1, 29, '{"v": 1, "step": 12, "time": 12.0, "type": "validated", "metric": 0.00019389807342286693, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.484711+00'),
	(1, 30, '{"v": 1, "step": 12, "time": 12.0, "type": "validated", "metric": 0.000014117039246035613, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.507264+00'),
	(1, 31, '{"v": 1, "step": 13, "time": 13.0, "type": "validated", "metric": 0.0001789828370057233, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.507264+00'),
	(1, 32, '{"v": 1, "step": 13, "time": 13.0, "type": "validated", "metric": 0.00001303111315018672, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.534217+00'),
	(1, 33, '{"v": 1, "step": 14, "time": 14.0, "type": "validated", "metric": 0.00016619834864817166, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.54546+00'),
	(1, 34, '{"v": 1, "step": 14, "time": 14.0, "type": "validated", "metric": 0.00001210031935374481, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.57687+00'),
	(1, 45, '{"v": 1, "type": "exited", "reason": "finished", "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.757555+00'),
	(1, 35, '{"v": 1, "step": 15, "time": 15.0, "type": "validated", "metric": 0.00015511845873829354, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.57687+00'),
	(1, 36, '{"v": 1, "step": 15, "time": 15.0, "type": "validated", "metric": 0.00001129363139682849, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.595014+00'),
	(1, 37, '{"v": 1, "step": 16, "time": 16.0, "type": "validated", "metric": 0.0001454235550671502, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.611523+00'),
	(1, 38, '{"v": 1, "rung": 1, "type": "rank", "value": 0.0001454235550671502, "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.611523+00'),
	(1, 39, '{"v": 1, "type": "stop", "reason": "done: it reached the top, rung 2 of 2 (16 epochs), and ranks 1 of 1 there", "request_id": "b9ecd94e-8edd-4a89-970a-8d43486e4980"}', '2026-11-22 11:20:51.611523+00'),
	(1, 40, '{"v": 1, "seed": 748743479, "type": "create", "bracket": 0, "hparams": {"lr": 0.040402140503696136, "net": {"name": "small", "wide": true, "depth": 3}}, "position": 28, "replaces": null, "request_id": "87e1b154-ac5b-4561-80de-97644b34e110"}', '2026-11-22 11:20:51.611523+00'),
	(1, 41, '{"v": 1, "step": 16, "time": 16.0, "type": "validated", "metric": 0.000010587779434526709, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.631365+00'),
	(1, 42, '{"v": 1, "rung": 1, "type": "rank", "value": 0.000010587779434526709, "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.631365+00'),
	(1, 43, '{"v": 1, "type": "stop", "reason": "done: it reached the top, rung 2 of 2 (16 epochs), and ranks 1 of 2 there", "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.631365+00'),
	(1, 44, '{"v": 1, "seed": 1941857605, "type": "create", "bracket": 0, "hparams": {"lr": 0.0007318748070568246, "net": {"name": "small", "wide": true, "depth": 3}}, "position": 35, "replaces": null, "request_id": "131fdbe8-bc0d-4cb1-ac6c-a036bfae9158"}', '2026-11-22 11:20:51.631365+00'),
	(1, 46, '{"v": 1, "type": "exited", "reason": "finished", "request_id": "19c2a8c7-f629-4851-8396-3b70d3d06cfa"}', '2026-11-22 11:20:51.861293+00'),
	(1, 47, '{"v": 1, "step": 1, "time": 1.0, "type": "validated", "metric": 0.00016449526454171705, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.113204+00'),
	(1, 48, '{"v": 1, "step": 2, "time": 2.0, "type": "validated", "metric": 0.00008224763227085853, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.174927+00'),
	(1, 49, '{"v": 1, "step": 1, "time": 1.0, "type": "validated", "metric": 0.040402140503696136, "request_id": "87e1b154-ac5b-4561-80de-97644b34e110"}', '2026-11-22 11:20:52.174927+00'),
	(1, 50, '{"v": 1, "step": 3, "time": 3.0, "type": "validated", "metric": 0.00005483175484723902, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.193357+00');
INSERT INTO public.search_journal VALUES
	(1, 51, '{"v": 1, "step": 2, "time": 2.0, "type": "validated", "metric": 0.020201070251848068, "request_id": "87e1b154-ac5b-4561-80de-97644b34e110"}', '2026-11-22 11:20:52.206087+00'),
	(1, 52, '{"v": 1, "step": 4, "time": 4.0, "type": "validated", "metric": 0.000041123816135429263, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.22531+00'),
	(1, 53, '{"v": 1, "step": 3, "time": 3.0, "type": "validated", "metric": 0.013467380167898712, "request_id": "87e1b154-ac5b-4561-80de-97644b34e110"}', '2026-11-22 11:20:52.257354+00'),
	(1, 55, '{"v": 1, "step": 4, "time": 4.0, "type": "validated", "metric": 0.010100535125924034, "request_id": "87e1b154-ac5b-4561-80de-97644b34e110"}', '2026-11-22 11:20:52.340088+00'),
	(1, 56, '{"v": 1, "rung": 0, "type": "rank", "value": 0.010100535125924034, "request_id": "87e1b154-ac5b-4561-80de-97644b34e110"}', '2026-11-22 11:20:52.340088+00'),
	(1, 57, '{"v": 1, "type": "stop", "reason": "stopped early: it ranks 3 of 3 at rung 1 of 2 (4 epochs), where the best 1 went on", "request_id": "87e1b154-ac5b-4561-80de-97644b34e110"}', '2026-11-22 11:20:52.340088+00'),
	(1, 58, '{"v": 1, "step": 6, "time": 6.0, "type": "validated", "metric": 0.00002741587742361951, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.380247+00'),
	(1, 59, '{"v": 1, "step": 7, "time": 7.0, "type": "validated", "metric": 0.00002349932350595958, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.406199+00'),
	(1, 63, '{"v": 1, "step": 10, "time": 10.0, "type": "validated", "metric": 0.000016449526454171704, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.517295+00'),
	(1, 64, '{"v": 1, "step": 1, "time": 1.0, "type": "validated", "metric": 0.0007318748070568246, "request_id": "131fdbe8-bc0d-4cb1-ac6c-a036bfae9158"}', '2026-11-22 11:20:52.551534+00'),
	(1, 68, '{"v": 1, "step": 3, "time": 3.0, "type": "validated", "metric": 0.00024395826901894152, "request_id": "131fdbe8-bc0d-4cb1-ac6c-a036bfae9158"}', '2026-11-22 11:20:52.62201+00'),
	(1, 73, '{"v": 1, "step": 14, "time": 14.0, "type": "validated", "metric": 0.00001174966175297979, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.676498+00'),
	(1, 74, '{"v": 1, "step": 15, "time": 15.0, "type": "validated", "metric": 0.000010966350969447804, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.729381+00'),
	(1, 75, '{"v": 1, "type": "exited", "reason": "finished", "request_id": "131fdbe8-bc0d-4cb1-ac6c-a036bfae9158"}', '2026-11-22 11:20:52.729381+00'),
	(1, 80, '{"v": 1, "type": "exited", "reason": "finished", "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.890321+00'),
	(1, 81, '{"v": 1, "step": 1, "time": 1.0, "type": "validated", "metric": 0.06145887036589924, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:52.992301+00'),
	(1, 82, '{"v": 1, "step": 2, "time": 2.0, "type": "validated", "metric": 0.03072943518294962, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.380022+00'),
	(1, 83, '{"v": 1, "step": 3, "time": 3.0, "type": "validated", "metric": 0.020486290121966413, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.414591+00'),
	(1, 84, '{"v": 1, "step": 4, "time": 4.0, "type": "validated", "metric": 0.01536471759147481, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.468144+00'),
	(1, 85, '{"v": 1, "step": 5, "time": 5.0, "type": "validated", "metric": 0.012291774073179848, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.521321+00'),
	(1, 54, '{"v": 1, "step": 5, "time": 5.0, "type": "validated", "metric": 0.00003289905290834341, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.322953+00'),
	(1, 60, '{"v": 1, "step": 8, "time": 8.0, "type": "validated", "metric": 0.000020561908067714632, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.431986+00'),
	(1, 61, '{"v": 1, "type": "exited", "reason": "finished", "request_id": "87e1b154-ac5b-4561-80de-97644b34e110"}', '2026-11-22 11:20:52.431986+00'),
	(1, 62, '{"v": 1, "step": 9, "time": 9.0, "type": "validated", "metric": 0.00001827725161574634, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.480705+00'),
	(1, 65, '{"v": 1, "step": 11, "time": 11.0, "type": "validated", "metric": 0.000014954114958337914, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.563101+00'),
	(1, 66, '{"v": 1, "step": 2, "time": 2.0, "type": "validated", "metric": 0.0003659374035284123, "request_id": "131fdbe8-bc0d-4cb1-ac6c-a036bfae9158"}', '2026-11-22 11:20:52.600858+00'),
	(1, 67, '{"v": 1, "step": 12, "time": 12.0, "type": "validated", "metric": 0.000013707938711809755, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.600858+00'),
	(1, 69, '{"v": 1, "step": 13, "time": 13.0, "type": "validated", "metric": 0.000012653481887824388, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.646318+00'),
	(1, 70, '{"v": 1, "step": 4, "time": 4.0, "type": "validated", "metric": 0.00018296870176420614, "request_id": "131fdbe8-bc0d-4cb1-ac6c-a036bfae9158"}', '2026-11-22 11:20:52.646318+00'),
	(1, 71, '{"v": 1, "rung": 0, "type": "rank", "value": 0.00018296870176420614, "request_id": "131fdbe8-bc0d-4cb1-ac6c-a036bfae9158"}', '2026-11-22 11:20:52.646318+00'),
	(1, 72, '{"v": 1, "type": "stop", "reason": "stopped early: it ranks 2 of 4 at rung 1 of 2 (4 epochs), where the best 1 went on", "request_id": "131fdbe8-bc0d-4cb1-ac6c-a036bfae9158"}', '2026-11-22 11:20:52.646318+00'),
	(1, 76, '{"v": 1, "step": 16, "time": 16.0, "type": "validated", "metric": 0.000010280954033857316, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.81105+00'),
	(1, 77, '{"v": 1, "rung": 0, "type": "rank", "value": 0.000010280954033857316, "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.81105+00'),
	(1, 78, '{"v": 1, "type": "stop", "reason": "done: it reached the top, rung 1 of 1 (16 epochs), and ranks 1 of 1 there", "request_id": "da6ab844-88b3-4204-a74c-f87fe6971b87"}', '2026-11-22 11:20:52.81105+00'),
	(1, 79, '{"v": 1, "seed": 1094761661, "type": "create", "bracket": 1, "hparams": {"lr": 0.06145887036589924, "net": {"name": "small", "wide": true, "depth": 3}}, "position": 42, "replaces": null, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:52.81105+00'),
	(1, 86, '{"v": 1, "step": 6, "time": 6.0, "type": "validated", "metric": 0.010243145060983207, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.548956+00'),
	(1, 87, '{"v": 1, "step": 7, "time": 7.0, "type": "validated", "metric": 0.008779838623699892, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.585145+00'),
	(1, 91, '{"v": 1, "step": 11, "time": 11.0, "type": "validated", "metric": 0.005587170033263567, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.785759+00'),
	(1, 95, '{"v": 1, "step": 15, "time": 15.0, "type": "validated", "metric": 0.004097258024393283, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.922895+00'),
	(1, 96, '{"v": 1, "step": 16, "time": 16.0, "type": "validated", "metric": 0.0038411793978687025, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.969807+00'),
	(1, 97, '{"v": 1, "rung": 0, "type": "rank", "value": 0.0038411793978687025, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.969807+00'),
	(1, 98, '{"v": 1, "type": "stop", "reason": "done: it reached the top, rung 1 of 1 (16 epochs), and ranks 2 of 2 there", "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.969807+00'),
	(1, 88, '{"v": 1, "step": 8, "time": 8.0, "type": "validated", "metric": 0.007682358795737405, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.681598+00'),
	(1, 92, '{"v": 1, "step": 12, "time": 12.0, "type": "validated", "metric": 0.005121572530491603, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.818579+00'),
	(1, 99, '{"v": 1, "type": "exited", "reason": "finished", "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:54.028666+00'),
	(1, 100, '{"v": 1, "type": "shutdown", "cancel": false, "reason": "all 6 trials are over: 6 finished", "failure": false}', '2026-11-22 11:20:54.028666+00'),
	(1, 89, '{"v": 1, "step": 9, "time": 9.0, "type": "validated", "metric": 0.006828763373988804, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.717062+00'),
	(1, 90, '{"v": 1, "step": 10, "time": 10.0, "type": "validated", "metric": 0.006145887036589924, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.750471+00'),
	(1, 93, '{"v": 1, "step": 13, "time": 13.0, "type": "validated", "metric": 0.00472760541276148, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.859727+00'),
	(1, 94, '{"v": 1, "step": 14, "time": 14.0, "type": "validated", "metric": 0.004389919311849946, "request_id": "b7b03843-b5cb-4f06-b0fc-31c0fb92bd99"}', '2026-11-22 11:20:53.895306+00');

INSERT INTO public.slots_in_use VALUES
	('a1', 0, 'e045fd34-3f29-4f25-8a52-0b430645f2e1'),
	('a1', 1, 'a9beb808-c78a-4996-a15f-94be7f0ad4d0'),
	('a1', 2, '340f4a88-f218-4fc0-a574-ed4ae78dc91c');

INSERT INTO public.spool_refusals VALUES
	('e045fd34-3f29-4f25-8a52-0b430645f2e1', 's-1-1', 2, 'the group ''a.b'' has a ''.'' in its name: a metric is named group.metric, leave it out', false);

INSERT INTO public.spool_streams VALUES
	('e045fd34-3f29-4f25-8a52-0b430645f2e1', 's-1-1', '2.00000000-0000-0000-0000-000000000001.1', 3);

INSERT INTO public.storage_backends VALUES
	(1, '{"type": "directory", "container_path": "/srv/more"}');

INSERT INTO public.tasks VALUES
	('1.b9ecd94e-8edd-4a89-970a-8d43486e4980', 'TRIAL', '34f70cb9-4573-4642-93ad-cd96ecbc9389', 2, NULL, '2026-11-22 11:20:50.765343+00', '2026-11-22 11:20:51.639858+00'),
	('1.19c2a8c7-f629-4851-8396-3b70d3d06cfa', 'TRIAL', '34f70cb9-4573-4642-93ad-cd96ecbc9389', 1, NULL, '2026-11-22 11:20:50.765343+00', '2026-11-22 11:20:51.756401+00'),
	('85deac47-dc32-4c9d-bdf9-7908a333f9f0', 'CHECKPOINT_GC', 'a59ea9d3-c768-4026-b5ce-525905985ff8', NULL, '{"v": 1, "env": {}, "files": [{"mode": 384, "path": "removals.json", "content": "{\"storage\": {\"type\": \"directory\", \"container_path\": \"/srv/more\"}, \"removals\": [{\"uuid\": \"b7d61129-515e-476f-9167-a6162eeb8227\", \"globs\": [\"**/*\"]}], \"tensorboards\": []}"}], "config": {"pbs": {"pbsbatch_args": null, "slots_per_node": null}, "debug": false, "slurm": {"gpu_type": null, "sbatch_args": null, "slots_per_node": null}, "work_dir": null, "resources": {"slots": 0, "weight": 1, "devices": [], "priority": 42, "shm_size": 4294967296, "resource_pool": "default", "is_single_node": true}, "entrypoint": ["{python}", "-m", "tenax.exec.gc"], "bind_mounts": [], "description": "Task (warm-linen-ocelot)", "environment": {"image": {"cpu": "determinedai/pytorch-ngc-dev:0736b6d", "cuda": "determinedai/pytorch-ngc-dev:0736b6d", "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"}, "ports": {}, "pod_spec": null, "proxy_ports": [], "registry_auth": null, "add_capabilities": [], "force_pull_image": false, "drop_capabilities": [], "environment_variables": {"cpu": [], "cuda": [], "rocm": []}}, "idle_timeout": null, "tensorboard_args": [], "checkpoint_storage": {"type": "directory", "container_path": "/srv/more"}, "notebook_idle_type": "kernels_or_terminals"}}', '2026-11-22 11:20:51.662566+00', '2026-11-22 11:20:51.950527+00'),
	('728809f3-c264-4759-aec9-aac1d542b18c', 'CHECKPOINT_GC', '3f06049f-def1-495d-ac19-b37d1eec8118', NULL, '{"v": 1, "env": {}, "files": [{"mode": 384, "path": "removals.json", "content": "{\"storage\": {\"type\": \"directory\", \"container_path\": \"/srv/more\"}, \"removals\": [{\"uuid\": \"50e19c95-9e66-4246-bc95-732a6d9cfb6e\", \"globs\": [\"**/*\"]}], \"tensorboards\": []}"}], "config": {"pbs": {"pbsbatch_args": null, "slots_per_node": null}, "debug": false, "slurm": {"gpu_type": null, "sbatch_args": null, "slots_per_node": null}, "work_dir": null, "resources": {"slots": 0, "weight": 1, "devices": [], "priority": 42, "shm_size": 4294967296, "resource_pool": "default", "is_single_node": true}, "entrypoint": ["{python}", "-m", "tenax.exec.gc"], "bind_mounts": [], "description": "Task (warm-linen-ocelot)", "environment": {"image": {"cpu": "determinedai/pytorch-ngc-dev:0736b6d", "cuda": "determinedai/pytorch-ngc-dev:0736b6d", "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"}, "ports": {}, "pod_spec": null, "proxy_ports": [], "registry_auth": null, "add_capabilities": [], "force_pull_image": false, "drop_capabilities": [], "environment_variables": {"cpu": [], "cuda": [], "rocm": []}}, "idle_timeout": null, "tensorboard_args": [], "checkpoint_storage": {"type": "directory", "container_path": "/srv/more"}, "notebook_idle_type": "kernels_or_terminals"}}', '2026-11-22 11:20:51.90444+00', '2026-11-22 11:20:52.183106+00'),
	('1.87e1b154-ac5b-4561-80de-97644b34e110', 'TRIAL', '34f70cb9-4573-4642-93ad-cd96ecbc9389', 4, NULL, '2026-11-22 11:20:51.611523+00', '2026-11-22 11:20:52.413035+00'),
	('1.131fdbe8-bc0d-4cb1-ac6c-a036bfae9158', 'TRIAL', '34f70cb9-4573-4642-93ad-cd96ecbc9389', 5, NULL, '2026-11-22 11:20:51.631365+00', '2026-11-22 11:20:52.723418+00'),
	('1.da6ab844-88b3-4204-a74c-f87fe6971b87', 'TRIAL', '34f70cb9-4573-4642-93ad-cd96ecbc9389', 3, NULL, '2026-11-22 11:20:50.765343+00', '2026-11-22 11:20:52.814345+00'),
	('08cca5f4-e063-4c73-86f7-23b5d71d0bed', 'CHECKPOINT_GC', 'b1c5f38d-57ba-416b-8ca6-17f2f0c5ab09', NULL, '{"v": 1, "env": {}, "files": [{"mode": 384, "path": "removals.json", "content": "{\"storage\": {\"type\": \"directory\", \"container_path\": \"/srv/more\"}, \"removals\": [{\"uuid\": \"b884ddda-184b-4379-b090-efaf671c708c\", \"globs\": [\"**/*\"]}], \"tensorboards\": []}"}], "config": {"pbs": {"pbsbatch_args": null, "slots_per_node": null}, "debug": false, "slurm": {"gpu_type": null, "sbatch_args": null, "slots_per_node": null}, "work_dir": null, "resources": {"slots": 0, "weight": 1, "devices": [], "priority": 42, "shm_size": 4294967296, "resource_pool": "default", "is_single_node": true}, "entrypoint": ["{python}", "-m", "tenax.exec.gc"], "bind_mounts": [], "description": "Task (warm-linen-ocelot)", "environment": {"image": {"cpu": "determinedai/pytorch-ngc-dev:0736b6d", "cuda": "determinedai/pytorch-ngc-dev:0736b6d", "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"}, "ports": {}, "pod_spec": null, "proxy_ports": [], "registry_auth": null, "add_capabilities": [], "force_pull_image": false, "drop_capabilities": [], "environment_variables": {"cpu": [], "cuda": [], "rocm": []}}, "idle_timeout": null, "tensorboard_args": [], "checkpoint_storage": {"type": "directory", "container_path": "/srv/more"}, "notebook_idle_type": "kernels_or_terminals"}}', '2026-11-22 11:20:52.907125+00', '2026-11-22 11:20:53.392814+00'),
	('1.b7b03843-b5cb-4f06-b0fc-31c0fb92bd99', 'TRIAL', '34f70cb9-4573-4642-93ad-cd96ecbc9389', 6, NULL, '2026-11-22 11:20:52.81105+00', '2026-11-22 11:20:54.007739+00'),
	('1c4cf360-25fd-480b-8c17-333dda853539', 'CHECKPOINT_GC', '42e05a6c-850d-41be-bb12-6f0beec02e81', NULL, '{"v": 1, "env": {}, "files": [{"mode": 384, "path": "removals.json", "content": "{\"storage\": {\"type\": \"directory\", \"container_path\": \"/srv/more\"}, \"removals\": [{\"uuid\": \"6fcebd65-9f08-465c-9a74-49fa8f07c51f\", \"globs\": [\"**/*\"]}], \"tensorboards\": []}"}], "config": {"pbs": {"pbsbatch_args": null, "slots_per_node": null}, "debug": false, "slurm": {"gpu_type": null, "sbatch_args": null, "slots_per_node": null}, "work_dir": null, "resources": {"slots": 0, "weight": 1, "devices": [], "priority": 42, "shm_size": 4294967296, "resource_pool": "default", "is_single_node": true}, "entrypoint": ["{python}", "-m", "tenax.exec.gc"], "bind_mounts": [], "description": "Task (warm-linen-ocelot)", "environment": {"image": {"cpu": "determinedai/pytorch-ngc-dev:0736b6d", "cuda": "determinedai/pytorch-ngc-dev:0736b6d", "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"}, "ports": {}, "pod_spec": null, "proxy_ports": [], "registry_auth": null, "add_capabilities": [], "force_pull_image": false, "drop_capabilities": [], "environment_variables": {"cpu": [], "cuda": [], "rocm": []}}, "idle_timeout": null, "tensorboard_args": [], "checkpoint_storage": {"type": "directory", "container_path": "/srv/more"}, "notebook_idle_type": "kernels_or_terminals"}}', '2026-11-22 11:20:54.093459+00', '2026-11-22 11:20:54.192626+00'),
	('2.00000000-0000-0000-0000-000000000001', 'TRIAL', '0d085f4c-38a9-458f-aeb9-5846d6c343a4', 7, NULL, '2026-11-22 11:20:55.114203+00', NULL),
	('3.00000000-0000-0000-0000-000000000001', 'TRIAL', 'b84bc894-a8a3-4811-a1f7-93dd768173f2', 8, NULL, '2026-11-22 11:20:55.160627+00', NULL),
	('4.00000000-0000-0000-0000-000000000001', 'TRIAL', '4148d837-c359-42d9-9ec9-6d7707c5e349', 9, NULL, '2026-11-22 11:20:55.191223+00', NULL),
	('5.00000000-0000-0000-0000-000000000069', 'TRIAL', '27401a0e-70e1-47e0-a8ed-23fecc921682', 10, NULL, '2026-11-22 11:20:55.320975+00', NULL),
	('7.00000000-0000-0000-0000-00000000006b', 'TRIAL', '5455ece2-dee8-41c4-8552-fb33d0abf1fe', 11, NULL, '2026-11-22 11:20:55.320975+00', NULL),
	('6.00000000-0000-0000-0000-00000000006a', 'TRIAL', 'f47fe0a9-fe6e-4948-be81-dd71dee31b89', 12, NULL, '2026-11-22 11:20:55.320975+00', NULL),
	('8.00000000-0000-0000-0000-00000000006c', 'TRIAL', 'cad8d432-e924-4a6e-9061-d4f7bddba04b', 13, NULL, '2026-11-22 11:20:55.320975+00', NULL),
	('9.cd04a0a8-c52a-43b8-aaa6-53017911cd10', 'TRIAL', 'a8b920c5-92eb-49c2-8543-1b3236fc4bad', 14, NULL, '2026-11-22 11:20:55.455289+00', NULL),
	('369772f1-93c0-4153-b9a5-9e8f01ecede0', 'COMMAND', '19dfc054-27c2-4ee4-b704-4552a2186093', NULL, '{"v": 1, "env": {}, "files": [], "config": {"pbs": {"pbsbatch_args": null, "slots_per_node": null}, "debug": false, "slurm": {"gpu_type": null, "sbatch_args": null, "slots_per_node": null}, "work_dir": null, "resources": {"slots": 0, "weight": 1, "devices": [], "priority": 42, "shm_size": 4294967296, "resource_pool": "default", "is_single_node": true}, "entrypoint": ["true"], "bind_mounts": [], "description": "Command (serene-maple-ibis)", "environment": {"image": {"cpu": "determinedai/pytorch-ngc-dev:0736b6d", "cuda": "determinedai/pytorch-ngc-dev:0736b6d", "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"}, "ports": {}, "pod_spec": null, "proxy_ports": [], "registry_auth": null, "add_capabilities": [], "force_pull_image": false, "drop_capabilities": [], "environment_variables": {"cpu": [], "cuda": [], "rocm": []}}, "idle_timeout": null, "tensorboard_args": [], "notebook_idle_type": "kernels_or_terminals"}}', '2026-11-22 11:20:55.509156+00', NULL),
	('7029872e-7493-447a-a3e1-f25401d169d5', 'GENERIC', '66256e25-81c5-47ac-b7a8-df411a6091c9', NULL, '{"v": 1, "env": {}, "files": [], "config": {"name": null, "debug": false, "project": "", "work_dir": null, "resources": {"slots": 0, "weight": 1, "devices": [], "priority": 42, "shm_size": 4294967296, "resource_pool": "default", "is_single_node": true}, "workspace": "", "entrypoint": ["true"], "bind_mounts": [], "description": "Task (merry-opal-ibis)", "environment": {"image": {"cpu": "determinedai/pytorch-ngc-dev:0736b6d", "cuda": "determinedai/pytorch-ngc-dev:0736b6d", "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"}, "ports": {}, "pod_spec": null, "proxy_ports": [], "registry_auth": null, "add_capabilities": [], "force_pull_image": false, "drop_capabilities": [], "environment_variables": {"cpu": [], "cuda": [], "rocm": []}}, "preemption_timeout": null}}', '2026-11-22 11:20:55.521303+00', NULL),
	('93711de3-d4c3-492d-b2a7-08d1841a2329', 'GENERIC', 'de3f5e5d-ac54-4662-9ff1-d11034d2c51e', NULL, '{"v": 1, "env": {}, "files": [], "config": {"name": null, "debug": false, "project": "", "work_dir": null, "resources": {"slots": 0, "weight": 1, "devices": [], "priority": 42, "shm_size": 4294967296, "resource_pool": "default", "is_single_node": true}, "workspace": "", "entrypoint": ["true"], "bind_mounts": [], "description": "Task (hardy-ivory-lark)", "environment": {"image": {"cpu": "determinedai/pytorch-ngc-dev:0736b6d", "cuda": "determinedai/pytorch-ngc-dev:0736b6d", "rocm": "determinedai/environments:rocm-5.6-pytorch-1.3-tf-2.10-rocm-mpich-0736b6d"}, "ports": {}, "pod_spec": null, "proxy_ports": [], "registry_auth": null, "add_capabilities": [], "force_pull_image": false, "drop_capabilities": [], "environment_variables": {"cpu": [], "cuda": [], "rocm": []}}, "preemption_timeout": null}}', '2026-11-22 11:20:55.534683+00', NULL),
	('2.00000000-0000-0000-0000-000000000032', 'TRIAL', '0d085f4c-38a9-458f-aeb9-5846d6c343a4', 15, NULL, '2026-11-22 11:20:55.959106+00', NULL);

INSERT INTO public.templates VALUES
	('template', 1, 2, '{"resources": {"slots": 0}}', 1, '2026-11-22 11:20:55.2502+00', '2026-11-22 11:20:55.2502+00');

INSERT INTO public.trial_sources VALUES
	(7, '0d6e4079-4c8e-4f5f-9a39-2f4e2b1c0002', 'INFERENCE', 1, 1, '2026-11-22 11:20:55.89243+00');

INSERT INTO public.trial_telemetry VALUES
	(4, NULL, '', '{"at": "2026-11-22T11:20:52.365933Z", "step": 5, "run_id": 1, "metrics": {"loss": 0.008080428100739227, "epochs": 5}}', '{"at": "2026-11-22T11:20:52.365933Z", "step": 5, "run_id": 1, "metrics": {"loss": 0.008080428100739227, "epochs": 5}}', 0.008080428100739227, '2026-11-22 11:20:52.365933+00'),
	(2, NULL, '', '{"at": "2026-11-22T11:20:51.604342Z", "step": 16, "run_id": 1, "metrics": {"loss": 0.0001454235550671502, "epochs": 16}}', '{"at": "2026-11-22T11:20:51.604342Z", "step": 16, "run_id": 1, "metrics": {"loss": 0.0001454235550671502, "epochs": 16}}', 0.0001454235550671502, '2026-11-22 11:20:51.604342+00'),
	(1, NULL, '', '{"at": "2026-11-22T11:20:51.619575Z", "step": 16, "run_id": 1, "metrics": {"loss": 0.000010587779434526709, "epochs": 16}}', '{"at": "2026-11-22T11:20:51.619575Z", "step": 16, "run_id": 1, "metrics": {"loss": 0.000010587779434526709, "epochs": 16}}', 1.0587779434526709e-05, '2026-11-22 11:20:51.619575+00'),
	(6, NULL, '', '{"at": "2026-11-22T11:20:53.959739Z", "step": 16, "run_id": 1, "metrics": {"loss": 0.0038411793978687025, "epochs": 16}}', '{"at": "2026-11-22T11:20:53.959739Z", "step": 16, "run_id": 1, "metrics": {"loss": 0.0038411793978687025, "epochs": 16}}', 0.0038411793978687025, '2026-11-22 11:20:53.959739+00'),
	(3, NULL, '', '{"at": "2026-11-22T11:20:52.750597Z", "step": 16, "run_id": 1, "metrics": {"loss": 0.000010280954033857316, "epochs": 16}}', '{"at": "2026-11-22T11:20:52.750597Z", "step": 16, "run_id": 1, "metrics": {"loss": 0.000010280954033857316, "epochs": 16}}', 1.0280954033857316e-05, '2026-11-22 11:20:52.750597+00'),
	(5, NULL, '', '{"at": "2026-11-22T11:20:52.673640Z", "step": 5, "run_id": 1, "metrics": {"loss": 0.0001463749614113649, "epochs": 5}}', '{"at": "2026-11-22T11:20:52.673640Z", "step": 5, "run_id": 1, "metrics": {"loss": 0.0001463749614113649, "epochs": 5}}', 0.0001463749614113649, '2026-11-22 11:20:52.67364+00'),
	(8, NULL, '', '{"at": "2026-11-22T11:20:55.707166Z", "step": 5, "run_id": 2, "metrics": {"accuracy": 0.9}}', '{"at": "2026-11-22T11:20:55.707166Z", "step": 5, "run_id": 2, "metrics": {"accuracy": 0.9}}', 0.9, '2026-11-22 11:20:55.707166+00'),
	(7, 0.5, '', '{"at": "2026-11-22T11:20:55.660745Z", "step": 40, "run_id": 1, "metrics": {"accuracy": 0.975}}', '{"at": "2026-11-22T11:20:55.660745Z", "step": 40, "run_id": 1, "metrics": {"accuracy": 0.975}}', 0.975, '2026-11-22 11:20:55.724954+00');

INSERT INTO public.trials VALUES
	(13, 8, '00000000-0000-0000-0000-00000000006c', 108, '8.00000000-0000-0000-0000-00000000006c', 'CANCELED', 'RUN', '', '', 1, 0, 0, 0, NULL, false, NULL, '{"lr": 0.1}', 7, NULL, '2026-11-22 11:20:55.320975+00', '2026-11-22 11:20:55.320975+00', NULL, true, NULL),
	(14, 9, 'cd04a0a8-c52a-43b8-aaa6-53017911cd10', 1, '9.cd04a0a8-c52a-43b8-aaa6-53017911cd10', 'ACTIVE', 'RUN', '', '', 1, 0, 0, 0, NULL, false, NULL, '{}', 0, NULL, '2026-11-22 11:20:55.455289+00', NULL, NULL, false, 'near'),
	(6, 1, 'b7b03843-b5cb-4f06-b0fc-31c0fb92bd99', 79, '1.b7b03843-b5cb-4f06-b0fc-31c0fb92bd99', 'COMPLETED', 'STOP', 'done: it reached the top, rung 1 of 1 (16 epochs), and ranks 2 of 2 there', 'done: it reached the top, rung 1 of 1 (16 epochs), and ranks 2 of 2 there', 4, 1, 0, 0, NULL, false, NULL, '{"lr": 0.06145887036589924, "net": {"name": "small", "wide": true, "depth": 3}}', 1094761661, NULL, '2026-11-22 11:20:52.81105+00', '2026-11-22 11:20:54.007739+00', NULL, false, NULL),
	(7, 2, '00000000-0000-0000-0000-000000000001', 1, '2.00000000-0000-0000-0000-000000000001', 'ACTIVE', 'RUN', '', '', 2, 1, 0, 0, NULL, false, NULL, '{"lr": 0.1}', 7, NULL, '2026-11-22 11:20:55.114203+00', NULL, NULL, false, NULL),
	(2, 1, 'b9ecd94e-8edd-4a89-970a-8d43486e4980', 3, '1.b9ecd94e-8edd-4a89-970a-8d43486e4980', 'COMPLETED', 'STOP', 'done: it reached the top, rung 2 of 2 (16 epochs), and ranks 1 of 1 there', 'done: it reached the top, rung 2 of 2 (16 epochs), and ranks 1 of 1 there', 4, 1, 0, 0, NULL, false, NULL, '{"lr": 0.002326776881074403, "net": {"name": "small", "wide": true, "depth": 3}}', 372560217, NULL, '2026-11-22 11:20:50.765343+00', '2026-11-22 11:20:51.639858+00', NULL, false, NULL),
	(1, 1, '19c2a8c7-f629-4851-8396-3b70d3d06cfa', 2, '1.19c2a8c7-f629-4851-8396-3b70d3d06cfa', 'COMPLETED', 'STOP', 'done: it reached the top, rung 2 of 2 (16 epochs), and ranks 1 of 2 there', 'done: it reached the top, rung 2 of 2 (16 epochs), and ranks 1 of 2 there', 4, 1, 0, 0, NULL, false, NULL, '{"lr": 0.00016940447095242734, "net": {"name": "small", "wide": true, "depth": 3}}', 959775639, NULL, '2026-11-22 11:20:50.765343+00', '2026-11-22 11:20:51.756401+00', NULL, false, NULL),
	(4, 1, '87e1b154-ac5b-4561-80de-97644b34e110', 40, '1.87e1b154-ac5b-4561-80de-97644b34e110', 'COMPLETED', 'STOP', 'stopped early: it ranks 3 of 3 at rung 1 of 2 (4 epochs), where the best 1 went on', 'stopped early: it ranks 3 of 3 at rung 1 of 2 (4 epochs), where the best 1 went on', 4, 1, 0, 0, NULL, false, NULL, '{"lr": 0.040402140503696136, "net": {"name": "small", "wide": true, "depth": 3}}', 748743479, NULL, '2026-11-22 11:20:51.611523+00', '2026-11-22 11:20:52.413035+00', NULL, false, NULL),
	(5, 1, '131fdbe8-bc0d-4cb1-ac6c-a036bfae9158', 44, '1.131fdbe8-bc0d-4cb1-ac6c-a036bfae9158', 'COMPLETED', 'STOP', 'stopped early: it ranks 2 of 4 at rung 1 of 2 (4 epochs), where the best 1 went on', 'stopped early: it ranks 2 of 4 at rung 1 of 2 (4 epochs), where the best 1 went on', 4, 1, 0, 0, NULL, false, NULL, '{"lr": 0.0007318748070568246, "net": {"name": "small", "wide": true, "depth": 3}}', 1941857605, NULL, '2026-11-22 11:20:51.631365+00', '2026-11-22 11:20:52.723418+00', NULL, false, NULL),
	(8, 3, '00000000-0000-0000-0000-000000000001', 1, '3.00000000-0000-0000-0000-000000000001', 'ACTIVE', 'RUN', '', '', 2, 2, 0, 0, NULL, false, NULL, '{"lr": 0.1}', 7, NULL, '2026-11-22 11:20:55.160627+00', NULL, NULL, false, NULL),
	(3, 1, 'da6ab844-88b3-4204-a74c-f87fe6971b87', 4, '1.da6ab844-88b3-4204-a74c-f87fe6971b87', 'COMPLETED', 'STOP', 'done: it reached the top, rung 1 of 1 (16 epochs), and ranks 1 of 1 there', 'done: it reached the top, rung 1 of 1 (16 epochs), and ranks 1 of 1 there', 4, 1, 0, 0, NULL, false, NULL, '{"lr": 0.00016449526454171705, "net": {"name": "small", "wide": true, "depth": 3}}', 769786948, NULL, '2026-11-22 11:20:50.765343+00', '2026-11-22 11:20:52.814345+00', NULL, false, NULL),
	(9, 4, '00000000-0000-0000-0000-000000000001', 1, '4.00000000-0000-0000-0000-000000000001', 'ACTIVE', 'RUN', '', '', 2, 1, 0, 0, NULL, false, NULL, '{"lr": 0.1}', 7, NULL, '2026-11-22 11:20:55.191223+00', NULL, NULL, false, NULL),
	(12, 6, '00000000-0000-0000-0000-00000000006a', 106, '6.00000000-0000-0000-0000-00000000006a', 'ACTIVE', 'RUN', '', '', 1, 0, 0, 0, NULL, false, NULL, '{"lr": 0.1}', 7, NULL, '2026-11-22 11:20:55.320975+00', NULL, NULL, false, NULL),
	(11, 7, '00000000-0000-0000-0000-00000000006b', 107, '7.00000000-0000-0000-0000-00000000006b', 'CANCELED', 'RUN', '', '', 1, 0, 0, 0, NULL, false, NULL, '{"lr": 0.1}', 7, NULL, '2026-11-22 11:20:55.320975+00', '2026-11-22 11:20:55.320975+00', NULL, false, NULL),
	(10, 5, '00000000-0000-0000-0000-000000000069', 105, '5.00000000-0000-0000-0000-000000000069', 'CANCELED', 'RUN', '', '', 1, 0, 0, 0, NULL, false, NULL, '{"lr": 0.1}', 7, NULL, '2026-11-22 11:20:55.320975+00', '2026-11-22 11:20:55.320975+00', 5, false, NULL),
	(15, 2, '00000000-0000-0000-0000-000000000032', 50, '2.00000000-0000-0000-0000-000000000032', 'ACTIVE', 'RUN', '', '', 2, 1, 0, 0, NULL, false, NULL, '{"lr": 0.1}', 7, NULL, '2026-11-22 11:20:55.959106+00', NULL, NULL, false, NULL);

INSERT INTO public.unmanaged_trials VALUES
	(14, '2026-11-22 11:20:55.455289+00', false);

INSERT INTO public.usage VALUES
	('72984c8b-8698-4036-a04f-93c94a630501', '1.b9ecd94e-8edd-4a89-970a-8d43486e4980.1', 0, '1.b9ecd94e-8edd-4a89-970a-8d43486e4980', 'TRIAL', 1, 2, 'determined', 1, 'Uncategorized', '{}', 'default', 'two', 1, '2026-11-22 11:20:50.810624+00', '2026-11-22 11:20:50.836712+00', '2026-11-22 11:20:51.691704+00'),
	('be52d5fa-f7a9-4753-b7e9-932302c902d5', '1.19c2a8c7-f629-4851-8396-3b70d3d06cfa.1', 0, '1.19c2a8c7-f629-4851-8396-3b70d3d06cfa', 'TRIAL', 1, 2, 'determined', 1, 'Uncategorized', '{}', 'default', 'two', 1, '2026-11-22 11:20:50.809687+00', '2026-11-22 11:20:50.817922+00', '2026-11-22 11:20:51.790227+00'),
	('ce4fd0d8-d75e-4732-8d3e-9c9a2a9927c2', '85deac47-dc32-4c9d-bdf9-7908a333f9f0.1', 0, '85deac47-dc32-4c9d-bdf9-7908a333f9f0', 'CHECKPOINT_GC', NULL, 2, 'determined', 1, 'Uncategorized', '{}', 'default', 'two', 0, '2026-11-22 11:20:51.712488+00', '2026-11-22 11:20:51.725151+00', '2026-11-22 11:20:51.9723+00'),
	('46b27a08-899b-4401-8ada-0284f43f45ff', '728809f3-c264-4759-aec9-aac1d542b18c.1', 0, '728809f3-c264-4759-aec9-aac1d542b18c', 'CHECKPOINT_GC', NULL, 2, 'determined', 1, 'Uncategorized', '{}', 'default', 'two', 0, '2026-11-22 11:20:51.977559+00', '2026-11-22 11:20:51.990493+00', '2026-11-22 11:20:52.184507+00'),
	('b04c7c4c-62d3-40bb-8122-e6e478242025', '1.87e1b154-ac5b-4561-80de-97644b34e110.1', 0, '1.87e1b154-ac5b-4561-80de-97644b34e110', 'TRIAL', 1, 2, 'determined', 1, 'Uncategorized', '{}', 'default', 'two', 1, '2026-11-22 11:20:51.663447+00', '2026-11-22 11:20:52.048589+00', '2026-11-22 11:20:52.422602+00'),
	('105a0aa6-bfc0-48fa-a79a-4243100da5c2', '1.131fdbe8-bc0d-4cb1-ac6c-a036bfae9158.1', 0, '1.131fdbe8-bc0d-4cb1-ac6c-a036bfae9158', 'TRIAL', 1, 2, 'determined', 1, 'Uncategorized', '{}', 'default', 'two', 1, '2026-11-22 11:20:51.668392+00', '2026-11-22 11:20:52.491775+00', '2026-11-22 11:20:52.729764+00'),
	('00a56f91-28cf-4bd6-b2e1-39d4c62ea597', '1.da6ab844-88b3-4204-a74c-f87fe6971b87.1', 0, '1.da6ab844-88b3-4204-a74c-f87fe6971b87', 'TRIAL', 1, 2, 'determined', 1, 'Uncategorized', '{}', 'default', 'two', 1, '2026-11-22 11:20:50.81116+00', '2026-11-22 11:20:51.870641+00', '2026-11-22 11:20:52.845239+00'),
	('c619d17e-bd26-4208-8b4e-a4efa96015c2', '08cca5f4-e063-4c73-86f7-23b5d71d0bed.1', 0, '08cca5f4-e063-4c73-86f7-23b5d71d0bed', 'CHECKPOINT_GC', NULL, 2, 'determined', 1, 'Uncategorized', '{}', 'default', 'two', 0, '2026-11-22 11:20:52.954097+00', '2026-11-22 11:20:52.977329+00', '2026-11-22 11:20:53.405989+00'),
	('016210f1-b701-4c35-97d0-5c71a6521fb1', '1.b7b03843-b5cb-4f06-b0fc-31c0fb92bd99.1', 0, '1.b7b03843-b5cb-4f06-b0fc-31c0fb92bd99', 'TRIAL', 1, 2, 'determined', 1, 'Uncategorized', '{}', 'default', 'two', 1, '2026-11-22 11:20:52.892674+00', '2026-11-22 11:20:52.906617+00', '2026-11-22 11:20:54.00921+00'),
	('32806344-da1a-41c2-9b2b-a3dd72205080', '1c4cf360-25fd-480b-8c17-333dda853539.1', 0, '1c4cf360-25fd-480b-8c17-333dda853539', 'CHECKPOINT_GC', NULL, 2, 'determined', 1, 'Uncategorized', '{}', 'default', 'two', 0, '2026-11-22 11:20:54.110782+00', '2026-11-22 11:20:54.113244+00', '2026-11-22 11:20:54.193454+00'),
	('e045fd34-3f29-4f25-8a52-0b430645f2e1', '2.00000000-0000-0000-0000-000000000001.1', 0, '2.00000000-0000-0000-0000-000000000001', 'TRIAL', 2, 2, 'determined', 1, 'Uncategorized', '{}', 'default', 'a1', 1, '2026-11-22 11:20:55.120296+00', '2026-11-22 11:20:55.114203+00', NULL),
	('a9beb808-c78a-4996-a15f-94be7f0ad4d0', '3.00000000-0000-0000-0000-000000000001.1', 0, '3.00000000-0000-0000-0000-000000000001', 'TRIAL', 3, 3, 'eve', 1, 'Uncategorized', '{}', 'default', 'a1', 1, '2026-11-22 11:20:55.163887+00', '2026-11-22 11:20:55.160627+00', NULL),
	('340f4a88-f218-4fc0-a574-ed4ae78dc91c', '4.00000000-0000-0000-0000-000000000001.1', 0, '4.00000000-0000-0000-0000-000000000001', 'TRIAL', 4, 1, 'admin', 1, 'Uncategorized', '{}', 'default', 'a1', 1, '2026-11-22 11:20:55.193191+00', '2026-11-22 11:20:55.191223+00', NULL);

INSERT INTO public.user_activity VALUES
	(2, 2, '2026-11-22 11:20:55.888915+00');

INSERT INTO public.user_group_members VALUES
	(1, 2);

INSERT INTO public.user_groups VALUES
	(1, 'group', '2026-11-22 11:20:55.55386+00');

INSERT INTO public.user_sessions VALUES
	(1, 1, '\x5927ab23dba226d859f2defd9ff628d7b73dea5fe631e8d82a4305296ee6833a', NULL, '2026-11-22 11:20:50.274165+00', '2026-11-29 11:20:50.274165+00'),
	(2, 2, '\x433e77aff32149e86e93ab653bb9ebcedf8286fe2520d859136f836aba4731bf', NULL, '2026-11-22 11:20:50.311544+00', '2026-11-29 11:20:50.311544+00'),
	(13, 3, '\x48a21db9cfa961a41eb6f4148ba634aaa3ab6370581f9208b74f4f9077c186d5', NULL, '2026-11-22 11:20:55.083629+00', '2026-11-29 11:20:55.083629+00'),
	(14, 1, '\x6be1e2091bcdc186a8b4cfa442c5afc09c2127d3b2a6464b033d4dec3ec7e470', NULL, '2026-11-22 11:20:55.088398+00', '2026-11-22 11:19:55.088398+00');

INSERT INTO public.user_settings VALUES
	(2, 'list', 'columns', '["id"]');

INSERT INTO public.users VALUES
	(1, 'admin', '', true, true, false, '$argon2id$v=19$m=8,t=1,p=1$y4HQ1K5zBT0$RhhOWA', NULL, NULL, NULL, NULL, '2026-11-22 11:20:49.285773+00', '2026-11-22 11:20:49.285773+00', '2026-11-22 11:20:50.274165+00'),
	(2, 'determined', '', false, true, false, '$argon2id$v=19$m=8,t=1,p=1$y4HQ1K5zBT0$RhhOWA', NULL, NULL, NULL, NULL, '2026-11-22 11:20:49.285773+00', '2026-11-22 11:20:49.285773+00', '2026-11-22 11:20:50.311544+00'),
	(3, 'eve', '', false, true, false, '$argon2id$v=19$m=8,t=1,p=1$YerHkkXu4fc$jEOPrg', NULL, NULL, NULL, NULL, '2026-11-22 11:20:55.080695+00', '2026-11-22 11:20:55.080695+00', '2026-11-22 11:20:55.083629+00');

INSERT INTO public.webhook_deliveries VALUES
	(1, '8453292b-cfdd-4a47-a946-284fb9a2f191', 1, '{"event_id": "8453292b-cfdd-4a47-a946-284fb9a2f191", "condition": {"state": "COMPLETED"}, "timestamp": 1795346454, "event_data": {"experiment": {"id": 1, "name": "search", "state": "COMPLETED", "project": "Uncategorized", "duration": 3, "workspace": "Uncategorized", "resource_pool": "default", "slots_per_trial": 1}}, "event_type": "EXPERIMENT_STATE_CHANGE"}', 'WAITING', 1, 'the receiver''s name is not known', '2026-11-22 11:20:54.036409+00', '2026-11-22 11:20:55.069356+00', NULL),
	(2, 'eec9fe81-25eb-45be-b04d-2a491cfdd2ab', 1, '{"event_id": "eec9fe81-25eb-45be-b04d-2a491cfdd2ab", "condition": {}, "timestamp": 1795346456, "event_data": {"custom": {"level": "INFO", "title": "t", "description": "d"}, "experiment": {"id": 2, "name": "digits", "state": "ACTIVE", "project": "Uncategorized", "duration": 1, "trial_id": 7, "workspace": "Uncategorized", "resource_pool": "default", "slots_per_trial": 1}}, "event_type": "CUSTOM"}', 'WAITING', 0, '', '2026-11-22 11:20:55.847394+00', '2026-11-22 11:20:55.847394+00', NULL),
	(3, 'b7983de2-898c-4df0-afe4-588d2a39a6a9', 1, '{"event_id": "b7983de2-898c-4df0-afe4-588d2a39a6a9", "condition": {}, "timestamp": 1795346456, "event_data": {"custom": {"level": "INFO", "title": "t", "description": "d"}, "experiment": {"id": 2, "name": "digits", "state": "ACTIVE", "project": "Uncategorized", "duration": 1, "trial_id": 7, "workspace": "Uncategorized", "resource_pool": "default", "slots_per_trial": 1}}, "event_type": "CUSTOM"}', 'WAITING', 0, '', '2026-11-22 11:20:55.942925+00', '2026-11-22 11:20:55.942925+00', NULL),
	(4, '58518107-2c3c-42fe-be64-ba759e837b0f', 1, '{"event_id": "58518107-2c3c-42fe-be64-ba759e837b0f", "condition": {"regex": "slow"}, "timestamp": 1795346456, "event_data": {"task_log": {"task_id": "1.131fdbe8-bc0d-4cb1-ac6c-a036bfae9158", "node_name": "", "triggering_log": "this is slow: out of memory"}}, "event_type": "TASK_LOG"}', 'WAITING', 0, '', '2026-11-22 11:20:55.984092+00', '2026-11-22 11:20:55.984092+00', NULL);

INSERT INTO public.webhook_log_matches VALUES
	('1.131fdbe8-bc0d-4cb1-ac6c-a036bfae9158', 2);

INSERT INTO public.webhook_triggers VALUES
	(1, 1, 'EXPERIMENT_STATE_CHANGE', '{"state": "COMPLETED"}'),
	(2, 1, 'TASK_LOG', '{"regex": "slow"}'),
	(3, 1, 'CUSTOM', '{}'),
	(4, 2, 'CUSTOM', '{}');

INSERT INTO public.webhooks VALUES
	(1, 'all', 'https://hooks.example.com/secret', 'SLACK', 'WORKSPACE', NULL, 1, '2026-11-22 11:20:50.399995+00'),
	(2, 'hook', 'http://169.254.0.1/s3cr3t-hook-path', 'DEFAULT', 'WORKSPACE', 2, 2, '2026-11-22 11:20:55.564387+00');

INSERT INTO public.workspace_pins VALUES
	(2, 2, '2026-11-22 11:20:55.209234+00'),
	(2, 3, '2026-11-22 11:20:55.212754+00'),
	(2, 4, '2026-11-22 11:20:55.214674+00');

INSERT INTO public.workspaces VALUES
	(1, 'Uncategorized', NULL, true, false, '2026-11-22 11:20:49.228185+00', 'ACTIVE', '', NULL, NULL, NULL, NULL, NULL, '', ''),
	(2, 'workspace', 2, false, false, '2026-11-22 11:20:55.209234+00', 'ACTIVE', '', NULL, NULL, NULL, NULL, NULL, '', ''),
	(3, 'empty_workspace', 2, false, false, '2026-11-22 11:20:55.212754+00', 'ACTIVE', '', NULL, NULL, NULL, NULL, NULL, '', ''),
	(4, 'archived_workspace', 2, false, true, '2026-11-22 11:20:55.214674+00', 'ACTIVE', '', NULL, NULL, NULL, NULL, NULL, '', '');

SELECT pg_catalog.setval('public.access_tokens_id_seq', 1, true);

SELECT pg_catalog.setval('public.experiments_id_seq', 9, true);

SELECT pg_catalog.setval('public.model_versions_id_seq', 1, true);

SELECT pg_catalog.setval('public.models_id_seq', 2, true);

SELECT pg_catalog.setval('public.projects_id_seq', 4, true);

SELECT pg_catalog.setval('public.run_metadata_index_id_seq', 14, true);

SELECT pg_catalog.setval('public.search_inbox_id_seq', 92, true);

SELECT pg_catalog.setval('public.storage_backends_id_seq', 1, true);

SELECT pg_catalog.setval('public.trials_id_seq', 15, true);

SELECT pg_catalog.setval('public.user_groups_id_seq', 1, true);

SELECT pg_catalog.setval('public.user_sessions_id_seq', 14, true);

SELECT pg_catalog.setval('public.users_id_seq', 3, true);

SELECT pg_catalog.setval('public.webhook_deliveries_id_seq', 4, true);

SELECT pg_catalog.setval('public.webhook_triggers_id_seq', 4, true);

SELECT pg_catalog.setval('public.webhooks_id_seq', 2, true);

SELECT pg_catalog.setval('public.workspaces_id_seq', 4, true);

ALTER TABLE ONLY public.access_tokens
    ADD CONSTRAINT access_tokens_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.access_tokens
    ADD CONSTRAINT access_tokens_token_hash_key UNIQUE (token_hash);

ALTER TABLE ONLY public.agent_presence
    ADD CONSTRAINT agent_presence_pkey PRIMARY KEY (agent_id);

ALTER TABLE ONLY public.agent_slots
    ADD CONSTRAINT agent_slots_pkey PRIMARY KEY (agent_id, slot_id);

ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_credential_hash_key UNIQUE (credential_hash);

ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (agent_id);

ALTER TABLE ONLY public.all_gathers
    ADD CONSTRAINT all_gathers_pkey PRIMARY KEY (allocation_id, request_uuid);

ALTER TABLE ONLY public.allocation_accelerators
    ADD CONSTRAINT allocation_accelerators_pkey PRIMARY KEY (container_id);

ALTER TABLE ONLY public.allocation_tokens
    ADD CONSTRAINT allocation_tokens_pkey PRIMARY KEY (token_hash);

ALTER TABLE ONLY public.allocation_waits
    ADD CONSTRAINT allocation_waits_pkey PRIMARY KEY (allocation_id);

ALTER TABLE ONLY public.allocations
    ADD CONSTRAINT allocations_pkey PRIMARY KEY (allocation_id);

ALTER TABLE ONLY public.allocations
    ADD CONSTRAINT allocations_task_id_run_id_key UNIQUE (task_id, run_id);

ALTER TABLE ONLY public.checkpoint_uploads
    ADD CONSTRAINT checkpoint_uploads_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY public.chores
    ADD CONSTRAINT chores_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.cluster_message
    ADD CONSTRAINT cluster_message_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY public.cluster
    ADD CONSTRAINT cluster_pkey PRIMARY KEY (only_row);

ALTER TABLE ONLY public.containers
    ADD CONSTRAINT containers_allocation_id_rank_key UNIQUE (allocation_id, rank);

ALTER TABLE ONLY public.containers
    ADD CONSTRAINT containers_pkey PRIMARY KEY (container_id);

ALTER TABLE ONLY public.contexts
    ADD CONSTRAINT contexts_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY public.experiment_documents
    ADD CONSTRAINT experiment_documents_pkey PRIMARY KEY (experiment_id);

ALTER TABLE ONLY public.experiment_tallies
    ADD CONSTRAINT experiment_tallies_pkey PRIMARY KEY (experiment_id);

ALTER TABLE ONLY public.experiments
    ADD CONSTRAINT experiments_job_id_key UNIQUE (job_id);

ALTER TABLE ONLY public.experiments
    ADD CONSTRAINT experiments_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.garbage_due
    ADD CONSTRAINT garbage_due_pkey PRIMARY KEY (experiment_id);

ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (job_id);

ALTER TABLE ONLY public.launched_tasks
    ADD CONSTRAINT launched_tasks_pkey PRIMARY KEY (task_id);

ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (loop);

ALTER TABLE ONLY public.log_chunks
    ADD CONSTRAINT log_chunks_pkey PRIMARY KEY (month, task_id, first_line);

ALTER TABLE ONLY public.log_chunks_202611
    ADD CONSTRAINT log_chunks_202611_pkey PRIMARY KEY (month, task_id, first_line);

ALTER TABLE ONLY public.log_matches
    ADD CONSTRAINT log_matches_pkey PRIMARY KEY (trial_id, policy, action, agent_id);

ALTER TABLE ONLY public.log_streams
    ADD CONSTRAINT log_streams_pkey PRIMARY KEY (container_id, stream);

ALTER TABLE ONLY public.log_tasks
    ADD CONSTRAINT log_tasks_pkey PRIMARY KEY (task_id);

ALTER TABLE ONLY public.metric_blocks
    ADD CONSTRAINT metric_blocks_pkey PRIMARY KEY (month, trial_id, grp, first_ord);

ALTER TABLE ONLY public.metric_blocks_202611
    ADD CONSTRAINT metric_blocks_202611_pkey PRIMARY KEY (month, trial_id, grp, first_ord);

ALTER TABLE ONLY public.metric_chunks
    ADD CONSTRAINT metric_chunks_pkey PRIMARY KEY (month, trial_id, grp, metric, first_ord);

ALTER TABLE ONLY public.metric_chunks_202611
    ADD CONSTRAINT metric_chunks_202611_pkey PRIMARY KEY (month, trial_id, grp, metric, first_ord);

ALTER TABLE ONLY public.metric_cuts
    ADD CONSTRAINT metric_cuts_pkey PRIMARY KEY (trial_id, run_id, kind);

ALTER TABLE ONLY public.metric_groups
    ADD CONSTRAINT metric_groups_pkey PRIMARY KEY (trial_id, grp);

ALTER TABLE ONLY public.metric_tail
    ADD CONSTRAINT metric_tail_pkey PRIMARY KEY (month, trial_id, grp, first_ord);

ALTER TABLE ONLY public.metric_tail_202611
    ADD CONSTRAINT metric_tail_202611_pkey PRIMARY KEY (month, trial_id, grp, first_ord);

ALTER TABLE ONLY public.model_versions
    ADD CONSTRAINT model_versions_model_id_version_key UNIQUE (model_id, version);

ALTER TABLE ONLY public.model_versions
    ADD CONSTRAINT model_versions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.models
    ADD CONSTRAINT models_name_key UNIQUE (name);

ALTER TABLE ONLY public.models
    ADD CONSTRAINT models_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.pool_bindings
    ADD CONSTRAINT pool_bindings_pkey PRIMARY KEY (pool, workspace_id);

ALTER TABLE ONLY public.project_counters
    ADD CONSTRAINT project_counters_pkey PRIMARY KEY (project_id);

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.removals
    ADD CONSTRAINT removals_pkey PRIMARY KEY (uuid);

ALTER TABLE ONLY public.removed_agents
    ADD CONSTRAINT removed_agents_pkey PRIMARY KEY (agent_id);

ALTER TABLE ONLY public.rendezvous_members
    ADD CONSTRAINT rendezvous_members_pkey PRIMARY KEY (container_id);

ALTER TABLE ONLY public.run_hparams
    ADD CONSTRAINT run_hparams_pkey PRIMARY KEY (trial_id, key);

ALTER TABLE ONLY public.run_metadata_index
    ADD CONSTRAINT run_metadata_index_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.run_metadata
    ADD CONSTRAINT run_metadata_pkey PRIMARY KEY (trial_id);

ALTER TABLE ONLY public.run_numbers
    ADD CONSTRAINT run_numbers_pkey PRIMARY KEY (trial_id);

ALTER TABLE ONLY public.run_numbers
    ADD CONSTRAINT run_numbers_project_id_local_id_key UNIQUE (project_id, local_id);

ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.search_inbox
    ADD CONSTRAINT search_inbox_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.search_inbox
    ADD CONSTRAINT search_inbox_trial_id_kind_at_key_key UNIQUE (trial_id, kind, at_key);

ALTER TABLE ONLY public.search_journal
    ADD CONSTRAINT search_journal_pkey PRIMARY KEY (experiment_id, seq);

ALTER TABLE ONLY public.slots_in_use
    ADD CONSTRAINT slots_in_use_pkey PRIMARY KEY (agent_id, slot_id);

ALTER TABLE ONLY public.spool_refusals
    ADD CONSTRAINT spool_refusals_pkey PRIMARY KEY (container_id, stream, n);

ALTER TABLE ONLY public.spool_streams
    ADD CONSTRAINT spool_streams_pkey PRIMARY KEY (container_id, stream);

ALTER TABLE ONLY public.storage_backends
    ADD CONSTRAINT storage_backends_config_key UNIQUE (config);

ALTER TABLE ONLY public.storage_backends
    ADD CONSTRAINT storage_backends_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (task_id);

ALTER TABLE ONLY public.templates
    ADD CONSTRAINT templates_pkey PRIMARY KEY (name);

ALTER TABLE ONLY public.trial_sources
    ADD CONSTRAINT trial_sources_pkey PRIMARY KEY (trial_id, checkpoint_uuid);

ALTER TABLE ONLY public.trial_telemetry
    ADD CONSTRAINT trial_telemetry_pkey PRIMARY KEY (trial_id);

ALTER TABLE ONLY public.trials
    ADD CONSTRAINT trials_experiment_id_journal_seq_key UNIQUE (experiment_id, journal_seq);

ALTER TABLE ONLY public.trials
    ADD CONSTRAINT trials_experiment_id_request_id_key UNIQUE (experiment_id, request_id);

ALTER TABLE ONLY public.trials
    ADD CONSTRAINT trials_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.trials
    ADD CONSTRAINT trials_task_id_key UNIQUE (task_id);

ALTER TABLE ONLY public.unmanaged_trials
    ADD CONSTRAINT unmanaged_trials_pkey PRIMARY KEY (trial_id);

ALTER TABLE ONLY public.usage
    ADD CONSTRAINT usage_pkey PRIMARY KEY (container_id);

ALTER TABLE ONLY public.user_activity
    ADD CONSTRAINT user_activity_pkey PRIMARY KEY (user_id, project_id);

ALTER TABLE ONLY public.user_group_members
    ADD CONSTRAINT user_group_members_pkey PRIMARY KEY (group_id, user_id);

ALTER TABLE ONLY public.user_groups
    ADD CONSTRAINT user_groups_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.user_sessions
    ADD CONSTRAINT user_sessions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.user_sessions
    ADD CONSTRAINT user_sessions_token_hash_key UNIQUE (token_hash);

ALTER TABLE ONLY public.user_settings
    ADD CONSTRAINT user_settings_pkey PRIMARY KEY (user_id, storage_path, key);

ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_event_id_key UNIQUE (event_id);

ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhook_log_matches
    ADD CONSTRAINT webhook_log_matches_pkey PRIMARY KEY (task_id, trigger_id);

ALTER TABLE ONLY public.webhook_triggers
    ADD CONSTRAINT webhook_triggers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.workspace_pins
    ADD CONSTRAINT workspace_pins_pkey PRIMARY KEY (user_id, workspace_id);

ALTER TABLE ONLY public.workspaces
    ADD CONSTRAINT workspaces_pkey PRIMARY KEY (id);

CREATE INDEX access_tokens_user ON public.access_tokens USING btree (user_id);

CREATE INDEX allocation_accelerators_allocation ON public.allocation_accelerators USING btree (allocation_id);

CREATE INDEX allocation_tokens_allocation ON public.allocation_tokens USING btree (allocation_id);

CREATE UNIQUE INDEX allocations_one_open ON public.allocations USING btree (task_id) WHERE (state <> 'TERMINATED'::text);

CREATE INDEX allocations_open ON public.allocations USING btree (allocation_id) WHERE (state <> 'TERMINATED'::text);

CREATE INDEX checkpoint_uploads_open ON public.checkpoint_uploads USING btree (allocation_id) WHERE (collected_at IS NULL);

CREATE INDEX checkpoint_uploads_task ON public.checkpoint_uploads USING btree (task_id);

CREATE INDEX checkpoints_trial ON public.checkpoints USING btree (trial_id, steps_completed DESC);

CREATE INDEX containers_agent ON public.containers USING btree (agent_id) WHERE (gone_at IS NULL);

CREATE INDEX experiment_documents_context ON public.experiment_documents USING btree (context_hash) WHERE (context_hash IS NOT NULL);

CREATE INDEX experiment_documents_description ON public.experiment_documents USING btree (description_key, experiment_id);

CREATE INDEX experiment_documents_labels ON public.experiment_documents USING gin (labels);

CREATE INDEX experiment_documents_name ON public.experiment_documents USING btree (name_key, experiment_id);

CREATE INDEX experiment_tallies_best ON public.experiment_tallies USING btree (best_order, experiment_id);

CREATE INDEX experiment_tallies_best_last ON public.experiment_tallies USING btree (best_order DESC NULLS LAST, experiment_id DESC);

CREATE INDEX experiment_tallies_pool ON public.experiment_tallies USING btree (pool, experiment_id);

CREATE INDEX experiments_created ON public.experiments USING btree (created_at, id);

CREATE INDEX experiments_ended ON public.experiments USING btree (ended_at, id);

CREATE INDEX experiments_ended_last ON public.experiments USING btree (ended_at DESC NULLS LAST, id DESC);

CREATE UNIQUE INDEX experiments_external ON public.experiments USING btree (external_id) WHERE (external_id IS NOT NULL);

CREATE INDEX experiments_live ON public.experiments USING btree (id) WHERE (ended_at IS NULL);

CREATE INDEX experiments_of_project ON public.experiments USING btree (project_id, id);

CREATE INDEX experiments_owner ON public.experiments USING btree (owner_id, id);

CREATE INDEX experiments_parent ON public.experiments USING btree (parent_id, id) WHERE (parent_id IS NOT NULL);

CREATE INDEX experiments_shown ON public.experiments USING btree (archived, owner_id, project_id, id);

CREATE INDEX experiments_state ON public.experiments USING btree (array_position(ARRAY['ACTIVE'::text, 'PAUSED'::text, 'STOPPING_CANCELED'::text, 'STOPPING_KILLED'::text, 'STOPPING_COMPLETED'::text, 'STOPPING_ERROR'::text, 'DELETING'::text, 'CANCELED'::text, 'COMPLETED'::text, 'ERROR'::text, 'DELETE_FAILED'::text], state), id);

CREATE INDEX launched_tasks_context ON public.launched_tasks USING btree (context_hash) WHERE (context_hash IS NOT NULL);

CREATE INDEX launched_tasks_live ON public.launched_tasks USING btree (task_id) WHERE (ended_at IS NULL);

CREATE INDEX launched_tasks_parent ON public.launched_tasks USING btree (parent_id) WHERE (parent_id IS NOT NULL);

CREATE INDEX metric_groups_unsealed ON public.metric_groups USING btree (trial_id, grp) WHERE (sealed_ord < next_ord);

CREATE INDEX model_versions_checkpoint ON public.model_versions USING btree (checkpoint_uuid);

CREATE INDEX models_workspace ON public.models USING btree (workspace_id);

CREATE INDEX pool_bindings_workspace ON public.pool_bindings USING btree (workspace_id);

CREATE INDEX projects_going ON public.projects USING btree (id) WHERE (state = 'DELETING'::text);

CREATE UNIQUE INDEX projects_key ON public.projects USING btree (key);

CREATE UNIQUE INDEX projects_name ON public.projects USING btree (workspace_id, lower(name));

CREATE INDEX removals_checkpoint ON public.removals USING btree (checkpoint);

CREATE INDEX removals_retry ON public.removals USING btree (retry_at);

CREATE INDEX removals_task ON public.removals USING btree (task_id) WHERE (task_id IS NOT NULL);

CREATE INDEX removals_upload ON public.removals USING btree (upload);

CREATE INDEX run_metadata_index_key ON public.run_metadata_index USING btree (trial_id, flat_key);

CREATE INDEX search_inbox_waiting ON public.search_inbox USING btree (experiment_id, id) WHERE (seq IS NULL);

CREATE INDEX slots_in_use_container ON public.slots_in_use USING btree (container_id);

CREATE INDEX spool_streams_allocation ON public.spool_streams USING btree (allocation_id);

CREATE INDEX tasks_job ON public.tasks USING btree (job_id);

CREATE INDEX tasks_kind ON public.tasks USING btree (kind, created_at) WHERE (kind <> 'TRIAL'::text);

CREATE INDEX tasks_trial ON public.tasks USING btree (trial_id);

CREATE INDEX templates_workspace ON public.templates USING btree (workspace_id);

CREATE INDEX trial_sources_checkpoint ON public.trial_sources USING btree (checkpoint_uuid);

CREATE UNIQUE INDEX trials_external ON public.trials USING btree (experiment_id, external_id) WHERE (external_id IS NOT NULL);

CREATE INDEX trials_held ON public.trials USING btree (held_until) WHERE (held_until IS NOT NULL);

CREATE INDEX trials_live ON public.trials USING btree (experiment_id) WHERE (state = 'ACTIVE'::text);

CREATE INDEX trials_warm_start ON public.trials USING btree (warm_start_checkpoint) WHERE (warm_start_checkpoint IS NOT NULL);

CREATE INDEX usage_ended ON public.usage USING btree (ended_at, started_at);

CREATE INDEX usage_experiment ON public.usage USING btree (experiment_id) WHERE (experiment_id IS NOT NULL);

CREATE INDEX usage_started ON public.usage USING btree (started_at, allocation_id);

CREATE INDEX user_group_members_user ON public.user_group_members USING btree (user_id);

CREATE UNIQUE INDEX user_groups_name ON public.user_groups USING btree (lower(name));

CREATE INDEX user_sessions_allocation ON public.user_sessions USING btree (allocation_id) WHERE (allocation_id IS NOT NULL);

CREATE UNIQUE INDEX users_username ON public.users USING btree (lower(username));

CREATE INDEX webhook_deliveries_ended ON public.webhook_deliveries USING btree (ended_at) WHERE (ended_at IS NOT NULL);

CREATE INDEX webhook_deliveries_waiting ON public.webhook_deliveries USING btree (webhook_id, id) WHERE (state = 'WAITING'::text);

CREATE INDEX webhook_deliveries_webhook ON public.webhook_deliveries USING btree (webhook_id, id);

CREATE INDEX webhook_triggers_kind ON public.webhook_triggers USING btree (kind);

CREATE INDEX webhook_triggers_webhook ON public.webhook_triggers USING btree (webhook_id);

CREATE UNIQUE INDEX webhooks_name ON public.webhooks USING btree (COALESCE(workspace_id, (0)::bigint), lower(name));

CREATE INDEX workspaces_going ON public.workspaces USING btree (id) WHERE (state = 'DELETING'::text);

CREATE UNIQUE INDEX workspaces_name ON public.workspaces USING btree (lower(name));

ALTER INDEX public.log_chunks_pkey ATTACH PARTITION public.log_chunks_202611_pkey;

ALTER INDEX public.metric_blocks_pkey ATTACH PARTITION public.metric_blocks_202611_pkey;

ALTER INDEX public.metric_chunks_pkey ATTACH PARTITION public.metric_chunks_202611_pkey;

ALTER INDEX public.metric_tail_pkey ATTACH PARTITION public.metric_tail_202611_pkey;

CREATE TRIGGER access_tokens_tell AFTER DELETE OR UPDATE ON public.access_tokens FOR EACH ROW EXECUTE FUNCTION public.tell_credential_changed('token', 'token_hash');

CREATE TRIGGER agents_tell AFTER DELETE OR UPDATE OF credential_hash ON public.agents FOR EACH ROW EXECUTE FUNCTION public.tell_credential_changed('agent', 'agent_id');

CREATE TRIGGER allocation_tokens_tell AFTER DELETE OR UPDATE ON public.allocation_tokens FOR EACH ROW EXECUTE FUNCTION public.tell_credential_changed('token', 'token_hash');

CREATE TRIGGER allocations_tell AFTER UPDATE OF state ON public.allocations FOR EACH ROW WHEN (((new.state = 'TERMINATED'::text) AND (old.state <> 'TERMINATED'::text))) EXECUTE FUNCTION public.tell_credential_changed('allocation', 'allocation_id');

CREATE CONSTRAINT TRIGGER checkpoints_tally AFTER INSERT OR DELETE OR UPDATE OF state, size_bytes ON public.checkpoints DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.tenax_tally_checkpoint();

CREATE TRIGGER containers_tell AFTER UPDATE OF gone_at ON public.containers FOR EACH ROW WHEN (((new.gone_at IS NOT NULL) AND (old.gone_at IS NULL))) EXECUTE FUNCTION public.tell_credential_changed('allocation', 'allocation_id');

CREATE TRIGGER experiment_documents_tally AFTER INSERT ON public.experiment_documents FOR EACH ROW EXECUTE FUNCTION public.tenax_tally_begin();

CREATE TRIGGER experiments_count AFTER INSERT OR DELETE ON public.experiments FOR EACH ROW EXECUTE FUNCTION public.tenax_count_experiment();

CREATE TRIGGER experiments_count_change AFTER UPDATE OF project_id, owner_id, state, archived ON public.experiments FOR EACH ROW WHEN (((((old.project_id IS DISTINCT FROM new.project_id) OR (old.owner_id IS DISTINCT FROM new.owner_id)) OR (old.state IS DISTINCT FROM new.state)) OR (old.archived IS DISTINCT FROM new.archived))) EXECUTE FUNCTION public.tenax_count_experiment();

CREATE CONSTRAINT TRIGGER experiments_moved AFTER UPDATE OF project_id ON public.experiments DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((old.project_id IS DISTINCT FROM new.project_id)) EXECUTE FUNCTION public.tenax_runs_moved();

CREATE CONSTRAINT TRIGGER jobs_tally_pool AFTER UPDATE OF pool ON public.jobs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((old.pool IS DISTINCT FROM new.pool)) EXECUTE FUNCTION public.tenax_tally_pool();

CREATE CONSTRAINT TRIGGER trial_telemetry_tally AFTER UPDATE OF best_metric ON public.trial_telemetry DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((old.best_metric IS DISTINCT FROM new.best_metric)) EXECUTE FUNCTION public.tenax_tally_best();

CREATE CONSTRAINT TRIGGER trial_telemetry_tally_first AFTER INSERT ON public.trial_telemetry DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN ((new.best_metric IS NOT NULL)) EXECUTE FUNCTION public.tenax_tally_best();

CREATE TRIGGER trials_hparams AFTER INSERT OR UPDATE OF hparams ON public.trials FOR EACH ROW EXECUTE FUNCTION public.tenax_index_hparams();

CREATE CONSTRAINT TRIGGER trials_number AFTER INSERT ON public.trials DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.tenax_run_made();

CREATE CONSTRAINT TRIGGER trials_tally AFTER INSERT OR DELETE ON public.trials DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.tenax_tally_trial();

CREATE CONSTRAINT TRIGGER trials_tally_state AFTER UPDATE OF state ON public.trials DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((old.state = 'ACTIVE'::text) <> (new.state = 'ACTIVE'::text))) EXECUTE FUNCTION public.tenax_tally_trial();

CREATE TRIGGER user_sessions_tell AFTER DELETE OR UPDATE ON public.user_sessions FOR EACH ROW EXECUTE FUNCTION public.tell_credential_changed('token', 'token_hash');

CREATE TRIGGER users_tell AFTER DELETE OR UPDATE ON public.users FOR EACH ROW EXECUTE FUNCTION public.tell_credential_changed('user', 'id');

ALTER TABLE ONLY public.access_tokens
    ADD CONSTRAINT access_tokens_made_by_fkey FOREIGN KEY (made_by) REFERENCES public.users(id) ON DELETE SET NULL;

ALTER TABLE ONLY public.access_tokens
    ADD CONSTRAINT access_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.agent_presence
    ADD CONSTRAINT agent_presence_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES public.agents(agent_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.agent_slots
    ADD CONSTRAINT agent_slots_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES public.agents(agent_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.all_gathers
    ADD CONSTRAINT all_gathers_allocation_id_fkey FOREIGN KEY (allocation_id) REFERENCES public.allocations(allocation_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.allocation_accelerators
    ADD CONSTRAINT allocation_accelerators_allocation_id_fkey FOREIGN KEY (allocation_id) REFERENCES public.allocations(allocation_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.allocation_accelerators
    ADD CONSTRAINT allocation_accelerators_container_id_fkey FOREIGN KEY (container_id) REFERENCES public.containers(container_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.allocation_tokens
    ADD CONSTRAINT allocation_tokens_allocation_id_fkey FOREIGN KEY (allocation_id) REFERENCES public.allocations(allocation_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.allocation_tokens
    ADD CONSTRAINT allocation_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.allocation_waits
    ADD CONSTRAINT allocation_waits_allocation_id_fkey FOREIGN KEY (allocation_id) REFERENCES public.allocations(allocation_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.allocations
    ADD CONSTRAINT allocations_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.tasks(task_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.checkpoint_uploads
    ADD CONSTRAINT checkpoint_uploads_allocation_id_fkey FOREIGN KEY (allocation_id) REFERENCES public.allocations(allocation_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.checkpoint_uploads
    ADD CONSTRAINT checkpoint_uploads_storage_id_fkey FOREIGN KEY (storage_id) REFERENCES public.storage_backends(id);

ALTER TABLE ONLY public.checkpoint_uploads
    ADD CONSTRAINT checkpoint_uploads_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.tasks(task_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_allocation_id_fkey FOREIGN KEY (allocation_id) REFERENCES public.allocations(allocation_id) ON DELETE SET NULL;

ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_storage_id_fkey FOREIGN KEY (storage_id) REFERENCES public.storage_backends(id);

ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.tasks(task_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.trials(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.cluster_message
    ADD CONSTRAINT cluster_message_set_by_fkey FOREIGN KEY (set_by) REFERENCES public.users(id) ON DELETE SET NULL;

ALTER TABLE ONLY public.containers
    ADD CONSTRAINT containers_allocation_id_fkey FOREIGN KEY (allocation_id) REFERENCES public.allocations(allocation_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.experiment_documents
    ADD CONSTRAINT experiment_documents_context_hash_fkey FOREIGN KEY (context_hash) REFERENCES public.contexts(hash);

ALTER TABLE ONLY public.experiment_documents
    ADD CONSTRAINT experiment_documents_experiment_id_fkey FOREIGN KEY (experiment_id) REFERENCES public.experiments(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.experiment_tallies
    ADD CONSTRAINT experiment_tallies_experiment_id_fkey FOREIGN KEY (experiment_id) REFERENCES public.experiments(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.experiments
    ADD CONSTRAINT experiments_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(job_id);

ALTER TABLE ONLY public.experiments
    ADD CONSTRAINT experiments_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id);

ALTER TABLE ONLY public.experiments
    ADD CONSTRAINT experiments_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES public.experiments(id) ON DELETE SET NULL;

ALTER TABLE ONLY public.experiments
    ADD CONSTRAINT experiments_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id);

ALTER TABLE ONLY public.garbage_due
    ADD CONSTRAINT garbage_due_experiment_id_fkey FOREIGN KEY (experiment_id) REFERENCES public.experiments(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id);

ALTER TABLE ONLY public.launched_tasks
    ADD CONSTRAINT launched_tasks_context_hash_fkey FOREIGN KEY (context_hash) REFERENCES public.contexts(hash);

ALTER TABLE ONLY public.launched_tasks
    ADD CONSTRAINT launched_tasks_forked_from_fkey FOREIGN KEY (forked_from) REFERENCES public.launched_tasks(task_id) ON DELETE SET NULL;

ALTER TABLE ONLY public.launched_tasks
    ADD CONSTRAINT launched_tasks_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES public.launched_tasks(task_id) ON DELETE SET NULL;

ALTER TABLE ONLY public.launched_tasks
    ADD CONSTRAINT launched_tasks_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE SET NULL;

ALTER TABLE ONLY public.launched_tasks
    ADD CONSTRAINT launched_tasks_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.tasks(task_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.launched_tasks
    ADD CONSTRAINT launched_tasks_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspaces(id) ON DELETE SET DEFAULT;

ALTER TABLE ONLY public.log_matches
    ADD CONSTRAINT log_matches_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.trials(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.log_streams
    ADD CONSTRAINT log_streams_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.log_tasks(task_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.log_tasks
    ADD CONSTRAINT log_tasks_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.tasks(task_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.model_versions
    ADD CONSTRAINT model_versions_checkpoint_uuid_fkey FOREIGN KEY (checkpoint_uuid) REFERENCES public.checkpoints(uuid) ON DELETE RESTRICT;

ALTER TABLE ONLY public.model_versions
    ADD CONSTRAINT model_versions_model_id_fkey FOREIGN KEY (model_id) REFERENCES public.models(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.model_versions
    ADD CONSTRAINT model_versions_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id);

ALTER TABLE ONLY public.models
    ADD CONSTRAINT models_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id);

ALTER TABLE ONLY public.models
    ADD CONSTRAINT models_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspaces(id);

ALTER TABLE ONLY public.pool_bindings
    ADD CONSTRAINT pool_bindings_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspaces(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.project_counters
    ADD CONSTRAINT project_counters_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id);

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspaces(id);

ALTER TABLE ONLY public.removals
    ADD CONSTRAINT removals_checkpoint_fkey FOREIGN KEY (checkpoint) REFERENCES public.checkpoints(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY public.removals
    ADD CONSTRAINT removals_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.tasks(task_id) ON DELETE SET NULL;

ALTER TABLE ONLY public.removals
    ADD CONSTRAINT removals_upload_fkey FOREIGN KEY (upload) REFERENCES public.checkpoint_uploads(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY public.rendezvous_members
    ADD CONSTRAINT rendezvous_members_allocation_id_fkey FOREIGN KEY (allocation_id) REFERENCES public.allocations(allocation_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.rendezvous_members
    ADD CONSTRAINT rendezvous_members_container_id_fkey FOREIGN KEY (container_id) REFERENCES public.containers(container_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.run_hparams
    ADD CONSTRAINT run_hparams_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.trials(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.run_metadata_index
    ADD CONSTRAINT run_metadata_index_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.run_metadata(trial_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.run_metadata
    ADD CONSTRAINT run_metadata_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.trials(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.run_numbers
    ADD CONSTRAINT run_numbers_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.run_numbers
    ADD CONSTRAINT run_numbers_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.trials(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.search_inbox
    ADD CONSTRAINT search_inbox_experiment_id_fkey FOREIGN KEY (experiment_id) REFERENCES public.experiments(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.search_inbox
    ADD CONSTRAINT search_inbox_experiment_id_seq_fkey FOREIGN KEY (experiment_id, seq) REFERENCES public.search_journal(experiment_id, seq) DEFERRABLE INITIALLY DEFERRED;

ALTER TABLE ONLY public.search_inbox
    ADD CONSTRAINT search_inbox_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.trials(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.search_journal
    ADD CONSTRAINT search_journal_experiment_id_fkey FOREIGN KEY (experiment_id) REFERENCES public.experiments(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.slots_in_use
    ADD CONSTRAINT slots_in_use_agent_id_slot_id_fkey FOREIGN KEY (agent_id, slot_id) REFERENCES public.agent_slots(agent_id, slot_id);

ALTER TABLE ONLY public.slots_in_use
    ADD CONSTRAINT slots_in_use_container_id_fkey FOREIGN KEY (container_id) REFERENCES public.containers(container_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.spool_refusals
    ADD CONSTRAINT spool_refusals_container_id_stream_fkey FOREIGN KEY (container_id, stream) REFERENCES public.spool_streams(container_id, stream) ON DELETE CASCADE;

ALTER TABLE ONLY public.spool_streams
    ADD CONSTRAINT spool_streams_allocation_id_fkey FOREIGN KEY (allocation_id) REFERENCES public.allocations(allocation_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_job_id_fkey FOREIGN KEY (job_id) REFERENCES public.jobs(job_id);

ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.trials(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.templates
    ADD CONSTRAINT templates_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id);

ALTER TABLE ONLY public.templates
    ADD CONSTRAINT templates_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspaces(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.trial_sources
    ADD CONSTRAINT trial_sources_checkpoint_uuid_fkey FOREIGN KEY (checkpoint_uuid) REFERENCES public.checkpoints(uuid) ON DELETE CASCADE;

ALTER TABLE ONLY public.trial_sources
    ADD CONSTRAINT trial_sources_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.trials(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.trial_telemetry
    ADD CONSTRAINT trial_telemetry_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.trials(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.trials
    ADD CONSTRAINT trials_experiment_id_fkey FOREIGN KEY (experiment_id) REFERENCES public.experiments(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.unmanaged_trials
    ADD CONSTRAINT unmanaged_trials_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES public.trials(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.user_activity
    ADD CONSTRAINT user_activity_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.user_activity
    ADD CONSTRAINT user_activity_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.user_group_members
    ADD CONSTRAINT user_group_members_group_id_fkey FOREIGN KEY (group_id) REFERENCES public.user_groups(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.user_group_members
    ADD CONSTRAINT user_group_members_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.user_sessions
    ADD CONSTRAINT user_sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.user_settings
    ADD CONSTRAINT user_settings_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES public.webhooks(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.webhook_log_matches
    ADD CONSTRAINT webhook_log_matches_task_id_fkey FOREIGN KEY (task_id) REFERENCES public.tasks(task_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.webhook_log_matches
    ADD CONSTRAINT webhook_log_matches_trigger_id_fkey FOREIGN KEY (trigger_id) REFERENCES public.webhook_triggers(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.webhook_triggers
    ADD CONSTRAINT webhook_triggers_webhook_id_fkey FOREIGN KEY (webhook_id) REFERENCES public.webhooks(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id) ON DELETE SET NULL;

ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspaces(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.workspace_pins
    ADD CONSTRAINT workspace_pins_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.workspace_pins
    ADD CONSTRAINT workspace_pins_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES public.workspaces(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.workspaces
    ADD CONSTRAINT workspaces_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id);
