"""From a request to a job: checked, completed with defaults, packed, written."""
