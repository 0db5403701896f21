"""The process that keeps a local cluster up."""
