"""Moves consumer groups from MirrorMaker 2's copies of topics to ours beside them, and back
(docs/migrate.md)."""
