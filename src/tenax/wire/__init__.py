"""Messages over HTTP and to agents: shapes only, no behaviour."""
