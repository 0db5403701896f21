"""Bodies of ``/api/v1``: one file per noun, one class per message.

Names and shapes are those that Determined 0.38's clients know; what is ours has a field of its own and never changes
what exists. Fields are written in snake case here and travel in camel case.
"""
