"""Taking in what tasks say: metrics by group commit, and everything else a spool carries, one by one."""
