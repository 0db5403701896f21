"""What the members of an allocation ask and report."""
