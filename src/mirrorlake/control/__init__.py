"""Keeps topics, configs and ACLs alike, beside records; each has a `*_plan` and its `*_sync`."""
