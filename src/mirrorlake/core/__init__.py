"""Pure logic: policies, topology, offset runs, plans. Knows neither Spark nor Kafka nor the clock."""
