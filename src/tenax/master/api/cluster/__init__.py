"""The master about itself, the cluster as a whole, and what is not offered here."""
