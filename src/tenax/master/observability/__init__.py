"""What the master says and counts about itself."""
