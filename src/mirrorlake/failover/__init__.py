"""Moving to the other cluster: the last catch-up, groups, queries, and what was left behind."""
