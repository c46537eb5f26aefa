"""Proof by content: what the source has, what the stage holds and what the target got, compared
record by record.

See docs/trust.md: what is proven, how a digest is made, and what it does not prove.
"""
