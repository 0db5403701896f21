"""Which trials to make or stop: pure decisions over values; no clock, no I/O, no unseeded randomness."""
