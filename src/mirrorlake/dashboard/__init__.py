"""The bundle's SQL dashboard on a local page: the same file and queries, on the given lake."""
