"""What happens to allocations: exits, losses, and what comes of them."""
