"""What changed, as followers of the live stream are told of it."""
