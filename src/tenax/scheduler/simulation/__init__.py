"""What recorded work would have met under other rules, other quotas or other machines: replayed in virtual time."""
