"""What followers of changes read: the rows of a subscription, each with a number that grows with every change."""
