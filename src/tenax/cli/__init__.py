"""The command line: one file per noun.

Rules: stdout is data, stderr is for messages; no colour unless to a terminal; nothing heavy is imported before
it is used (``tenax --help`` imports click alone); a person never meets a traceback; exit codes are in `exits`.
"""
