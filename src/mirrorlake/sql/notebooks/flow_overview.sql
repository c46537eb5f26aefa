-- What of each flow is looked at first, in the order of reading.
SELECT flow, state, topics, partitions, lag_records, lag_seconds, records_per_second, replication_p50_ms,
       replication_p99_ms, open_incidents, heartbeat_age_seconds, record_count, last_produced_at
FROM flow_status
ORDER BY flow
