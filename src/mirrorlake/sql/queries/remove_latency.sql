-- Delete latencies of batches produced before a time. Parameters: cutoff_ms.
DELETE FROM latency WHERE produced_at < timestamp_millis(:cutoff_ms)
