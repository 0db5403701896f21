"""Projects, models and model versions as they change, for those who follow them."""
