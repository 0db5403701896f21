"""Who gets slots, whom to preempt, and why: pure decisions over a snapshot."""
