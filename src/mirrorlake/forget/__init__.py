"""`mirrorlake forget`: records deleted from the stage by predicate."""
