-- name: telemetry
select coalesce((select sum(pg_total_relation_size(relid)) from pg_partition_tree('log_chunks')), 0)::bigint as logs,
       coalesce((select sum(pg_total_relation_size(relid))
                 from unnest(array['metric_tail', 'metric_blocks', 'metric_chunks']) parent,
                      pg_partition_tree(parent::regclass)), 0)::bigint
           + pg_total_relation_size('metric_groups') as metrics;

-- name: local_directory
-- A connection by a socket has no address. Who may not read settings sees none.
select setting from pg_settings where name = 'data_directory' and inet_server_addr() is null;
