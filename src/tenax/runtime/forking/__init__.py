"""What forks the processes of containers, so that a start costs no interpreter and no imports."""
