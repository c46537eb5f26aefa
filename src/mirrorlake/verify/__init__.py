"""Proof by content: the records of the source, the stage and the target, compared one by one.

See docs/trust.md: what is proven, how a digest is made, and what it does not prove.
"""
