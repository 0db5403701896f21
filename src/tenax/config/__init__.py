"""Experiment, master and agent configuration: schema, defaults, merge, dialects, and errors that say where and what.

Experiments are in `tenax.config.resolve`, settings of the servers in `tenax.config.master` and `tenax.config.agent`: a
program loads what it needs of them.
"""
