"""Routes, a folder per noun."""
