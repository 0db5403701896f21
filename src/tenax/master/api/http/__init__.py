"""What all routes share: declared, let in, read, paged, streamed, refused."""
