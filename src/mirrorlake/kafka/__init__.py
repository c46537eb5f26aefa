"""Clients of Kafka: connections, administration, consumer groups, secrets; `values` has the
clusters' answers."""
