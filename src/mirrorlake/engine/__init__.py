"""The running replicator: connections, target topics, and the loop that lands and produces until told to stop."""
