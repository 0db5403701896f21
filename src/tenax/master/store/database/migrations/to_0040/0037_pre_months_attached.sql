-- The partition of a month is made beside its parent and then attached. Made as a part of it, it takes the parent from
-- everybody: whoever read two parents while the first reports of a month came in could lock each other out.
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
        execute format('create table %I (like %I including all) with (autovacuum_vacuum_scale_factor = 0.05)', part, parent);
        execute format('alter table %I attach partition %I for values from (%s) to (%s)', parent, part, month, month + 1);
    end if;
end
$$;
