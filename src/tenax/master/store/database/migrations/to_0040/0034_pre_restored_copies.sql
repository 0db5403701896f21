-- Which database this is, as its server names it: a copy that was restored elsewhere is another one. Null until a master
-- has seen it.
alter table cluster add column database_identity text;
-- When a copy was last noticed: what it says of before is in doubt where others acted on what came after it.
alter table cluster add column restored_at timestamptz;
