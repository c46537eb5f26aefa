-- Records and bytes that reached the target, per minute, flow and topic.
CREATE OR REPLACE VIEW throughput AS
SELECT
  flow,
  topic,
  date_trunc('MINUTE', produced_at) AS minute,
  sum(record_count) AS record_count,
  sum(byte_count) AS byte_count,
  sum(record_count) / 60 AS records_per_second,
  sum(byte_count) / 60 AS bytes_per_second
FROM latency
GROUP BY flow, topic, date_trunc('MINUTE', produced_at)
