"""The SQL dashboard of the bundle, shown on a local page: the same file, the same queries, the lake
beside it."""
