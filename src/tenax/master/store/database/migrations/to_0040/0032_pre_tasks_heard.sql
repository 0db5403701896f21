-- An agent that is not heard while its tasks are has hung or was stopped, and its machine has not: it is waited for longer.
alter table agent_presence add column tasks_heard_at timestamptz;

-- Since when an agent counts as silent that is waited for so many seconds; whatever its tasks say, it is given up after four
-- times as long.
create function tenax_silent_since(seen timestamptz, tasks_heard timestamptz, wait double precision)
returns timestamptz language sql immutable parallel safe as $$
    select greatest(seen, least(coalesce(tasks_heard, seen), seen + make_interval(secs => 3 * wait)))
$$;
