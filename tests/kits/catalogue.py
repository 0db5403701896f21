"""What a database consists of, as its own catalogue says: tables, indexes, triggers, functions. Rows play no part.

``docs/schema.sql`` is written from it, and two databases are compared by it. Partitions of a table are left out:
those of a month are made with the first trial of the month.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import asyncpg

_TABLES = """
select c.oid, c.relname as name, c.relkind = 'p' as partitioned, pg_get_partkeydef(c.oid) as key,
       array_to_string(c.reloptions, ', ') as options
from pg_class c
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
order by c.relname
"""
_COLUMNS = """
select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required,
       a.attidentity <> '' as identity, a.attgenerated <> '' as generated,
       pg_get_expr(d.adbin, d.adrelid, true) as value,
       (select l.collname from pg_collation l where l.oid = a.attcollation and l.oid <> t.typcollation) as collation,
       case when a.attstorage <> t.typstorage then a.attstorage end as storage
from pg_attribute a
join pg_type t on t.oid = a.atttypid
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped
order by a.attnum
"""
#: What may not be null is said with its column.
_CONSTRAINTS = """
select conname as name, pg_get_constraintdef(oid, true) as text
from pg_constraint
where conrelid = $1 and contype in ('p', 'u', 'c', 'f', 'x')
order by array_position(array['p', 'u', 'f', 'c', 'x'], contype::text), conname
"""
#: Those of constraints are said with them.
_INDEXES = """
select pg_get_indexdef(i.indexrelid, 0, true) as text
from pg_index i join pg_class c on c.oid = i.indexrelid
where i.indrelid = $1
  and not exists (select 1 from pg_constraint o where o.conindid = i.indexrelid and o.contype in ('p', 'u', 'x'))
order by c.relname
"""
_TRIGGERS = """
select pg_get_triggerdef(oid, true) as text from pg_trigger where tgrelid = $1 and not tgisinternal order by tgname
"""
_FUNCTIONS = """
select pg_get_functiondef(oid) as text from pg_proc where pronamespace = 'public'::regnamespace
order by proname, pg_get_function_identity_arguments(oid)
"""
#: Whatever else there may be: of that this module knows nothing yet.
_OTHERS = """
select c.relname as name from pg_class c
where c.relnamespace = 'public'::regnamespace and c.relkind not in ('r', 'p', 'i', 'I')
  and not exists (select 1 from pg_depend d where d.objid = c.oid and d.deptype = 'i')
union all
select t.typname from pg_type t
where t.typnamespace = 'public'::regnamespace and t.typtype in ('d', 'e', 'r')
order by 1
"""


@dataclass(frozen=True)
class Table:
    """One table and what belongs to it, each as SQL."""

    name: str
    columns: tuple[str, ...]
    constraints: tuple[str, ...]
    #: Partitioning and storage parameters.
    ending: str
    indexes: tuple[str, ...]
    triggers: tuple[str, ...]

    def sql(self) -> str:
        inside = ",\n".join(f"    {line}" for line in (*self.columns, *self.constraints))
        triggers = (line.replace(" FOR EACH ROW", "\n    FOR EACH ROW") for line in self.triggers)
        after = "".join(f"{line};\n" for line in (*self.indexes, *triggers))
        return f"CREATE TABLE {self.name} (\n{inside}\n){self.ending};\n{after}"


@dataclass(frozen=True)
class Catalogue:
    """All of a database."""

    tables: tuple[Table, ...]
    functions: tuple[str, ...]

    def without_order(self) -> Catalogue:
        """Columns that were added later stand last in a table: without that difference."""
        tables = tuple(replace(table, columns=tuple(sorted(table.columns))) for table in self.tables)
        return replace(self, tables=tables)


async def catalogue(conn: asyncpg.Connection) -> Catalogue:
    """What is there, by name. Fails for what it could not tell."""
    # Then no name is told with the schema that it is in.
    await conn.execute("set search_path to public")
    others = [row["name"] for row in await conn.fetch(_OTHERS)]
    assert not others, f"teach tests/kits/catalogue.py to tell what these are: {others}"
    tables = [await _table(conn, row) for row in await conn.fetch(_TABLES)]
    functions = [_without_schema(row["text"]) for row in await conn.fetch(_FUNCTIONS)]
    return Catalogue(tuple(tables), tuple(functions))


async def _table(conn: asyncpg.Connection, row: asyncpg.Record) -> Table:
    oid = row["oid"]
    ending = f" PARTITION BY {row['key']}" if row["partitioned"] else ""
    return Table(
        row["name"],
        tuple(_column(each) for each in await conn.fetch(_COLUMNS, oid)),
        tuple(
            _on_one_line(f"CONSTRAINT {each['name']} {each['text']}") for each in await conn.fetch(_CONSTRAINTS, oid)
        ),
        ending + (f" WITH ({row['options']})" if row["options"] else ""),
        tuple(_on_one_line(each["text"]) for each in await conn.fetch(_INDEXES, oid)),
        tuple(_on_one_line(each["text"]) for each in await conn.fetch(_TRIGGERS, oid)),
    )


def _column(row: asyncpg.Record) -> str:
    words = [row["name"], row["type"]]
    if row["storage"]:
        words.append(f"STORAGE {_STORAGE[row['storage']]}")
    if row["collation"]:
        words.append(f'COLLATE "{row["collation"]}"')
    if row["required"]:
        words.append("NOT NULL")
    if row["identity"]:
        words.append("GENERATED BY DEFAULT AS IDENTITY")
    elif row["generated"]:
        words.append(f"GENERATED ALWAYS AS ({row['value']}) STORED")
    elif row["value"]:
        words.append(f"DEFAULT {row['value']}")
    return _on_one_line(" ".join(words))


_STORAGE = {b"p": "PLAIN", b"e": "EXTERNAL", b"x": "EXTENDED", b"m": "MAIN"}


def _on_one_line(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", text).replace(" USING btree", "")


def _without_schema(text: str) -> str:
    """A function is told with its schema, whatever the search path."""
    return text.replace(" FUNCTION public.", " FUNCTION ", 1).strip()
