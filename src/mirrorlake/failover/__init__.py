"""Going over to the other cluster: the last catch-up, groups moved, queries moved, what was left
behind."""
