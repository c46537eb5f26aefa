"""Thin adapters to Kafka's clients: configuration and administration."""
