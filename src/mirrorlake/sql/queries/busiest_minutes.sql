-- Records and bytes a second of the busiest minute of each flow of late. Parameters: since_ms, in ms since 1970.
SELECT flow, max(records_per_second) AS records_per_second, max(bytes_per_second) AS bytes_per_second
FROM (
  SELECT
    flow,
    date_trunc('MINUTE', produced_at) AS minute,
    sum(record_count) / 60 AS records_per_second,
    sum(byte_count) / 60 AS bytes_per_second
  FROM latency
  WHERE produced_at >= timestamp_millis(:since_ms)
  GROUP BY flow, date_trunc('MINUTE', produced_at)
)
GROUP BY flow
