"""Work that many share: the bounded pool of threads, and single flight."""
