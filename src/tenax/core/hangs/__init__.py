"""Ranks that stand still: beats of each, where they stand, and what to say of it. Standard library only, Python 3.9."""
