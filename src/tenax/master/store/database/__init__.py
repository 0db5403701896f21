"""The way to PostgreSQL: connections, migrations, statements, wake-ups, leases, filters."""
