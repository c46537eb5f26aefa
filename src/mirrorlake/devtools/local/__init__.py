"""Embedded Kafka clusters as local processes."""
