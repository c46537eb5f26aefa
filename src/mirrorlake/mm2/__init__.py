"""Compatibility with MirrorMaker 2: its topics and records, and import of its configuration."""
