"""Consumer groups moved from the copies that MirrorMaker 2 made to ours beside them, and back
(docs/migrate.md)."""
