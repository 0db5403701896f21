"""Events: the live stream of the web page."""
