"""The live stream of changes: its topics, what it remembers, and who follows it."""
