"""The parts of a configuration, one file each: what may be set, and what it means when nothing is."""
