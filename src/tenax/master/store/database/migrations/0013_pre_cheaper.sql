-- What every trial pays for, at less.

-- Partitions are made under one lock, which their maker holds until his transaction ends: whoever finds his partition
-- there needs none, and waits for nobody's flush to disk. Asked of the catalog itself: a name that was not there is
-- remembered as such by the session, and a lock does not make it look again.
create function tenax_has_part(parent text, part text) returns boolean language plpgsql as $$
begin
    return exists (
        select 1 from pg_catalog.pg_class c
        join pg_catalog.pg_class p on p.relnamespace = c.relnamespace
        where c.relname = part and p.oid = parent::regclass);
end
$$;
create or replace function tenax_add_month(parent text, month integer) returns void language plpgsql as $$
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

-- A new trial has no rows to replace.
create or replace function tenax_index_hparams() returns trigger language plpgsql as $$
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
