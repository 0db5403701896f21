-- What is in a database, one line each, to be compared with another: the rows of every table, where sequences stand, and
-- how many of every other kind of object there are. For psql: each line of an answer is run.
select format('select %L, count(*) from %I.%I', 'rows of ' || n.nspname || '.' || c.relname, n.nspname, c.relname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' order by 1 \gexec

select format('select %L, last_value, is_called from %I.%I', 'sequence ' || n.nspname || '.' || c.relname, n.nspname, c.relname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'S' and n.nspname !~ '^pg_' order by 1 \gexec

select 'relations of kind ' || c.relkind::text, count(*)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' group by c.relkind order by 1;

-- That a column is never null is a constraint of its own from PostgreSQL 18 on.
select 'constraints of kind ' || contype::text, count(*) from pg_constraint
where contype <> 'n' and connamespace::regnamespace::text !~ '^(pg_|information_schema)' group by contype order by 1;

select 'columns that are never null', count(*)
from pg_attribute a join pg_class c on c.oid = a.attrelid
where attnotnull and attnum > 0 and c.relkind in ('r', 'p') and c.relnamespace::regnamespace::text !~ '^(pg_|information_schema)';

select 'triggers', count(*) from pg_trigger where not tgisinternal;

select 'functions', count(*) from pg_proc where pronamespace::regnamespace::text !~ '^(pg_|information_schema)';
