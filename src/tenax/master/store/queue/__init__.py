"""The queue: jobs, pools, placements, and the account of slots."""
