"""Clients of Kafka: connections, administration, groups, secrets; `values` has their answers."""
