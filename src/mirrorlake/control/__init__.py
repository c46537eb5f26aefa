"""What is kept alike beside records: topics, configs and ACLs; each a `*_plan` and its `*_sync`."""
