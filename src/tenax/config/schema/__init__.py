"""The parts of a configuration, one file each: what may be said, and what it means when nothing is."""
