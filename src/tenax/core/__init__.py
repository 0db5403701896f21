"""What training code imports inside a task (the Core API). Standard library only, Python 3.9."""
