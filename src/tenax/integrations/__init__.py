"""Training loops of other frameworks as trials: a callback for each. Python 3.9.

Importing this package loads nothing; each module loads its framework: `tenax.integrations.transformers`,
`tenax.integrations.lightning`, `tenax.integrations.keras`. A loop of one's own needs none of them, whatever it is made
with: `tenax.core` asks for four calls.
"""
