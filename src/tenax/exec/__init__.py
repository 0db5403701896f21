"""What runs first inside a task: prepare, rendezvous, launch. Standard library only, Python 3.9."""
