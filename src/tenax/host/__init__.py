"""What one machine has: room on its disks, runtimes. It stands below all who ask."""
