"""What each thing becomes: experiment, trial, allocation, container, checkpoint; pure transitions over values."""
