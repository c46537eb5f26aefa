"""Clients of Kafka: connections, administration, consumer groups, secrets; `values` is what
clusters answer."""
