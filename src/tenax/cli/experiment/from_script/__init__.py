"""From a plain script to a trial or a search: ``tenax submit`` and ``tenax search``."""
