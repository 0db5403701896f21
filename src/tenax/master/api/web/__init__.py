"""The web page, and the addresses that lead to it."""
