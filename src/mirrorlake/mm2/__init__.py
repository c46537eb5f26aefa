"""Compatibility with MirrorMaker 2: its own topics and records, and the import of its
configuration."""
