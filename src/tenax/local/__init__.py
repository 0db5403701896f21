"""A whole cluster on this machine: the embedded PostgreSQL and the process that keeps the servers up."""
