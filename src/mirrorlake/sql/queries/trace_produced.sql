-- What one batch brought to the target of a flow: records in all and of one partition, how late these were, and which
-- way the batch went. Parameters: flow, topic, partition, batch_id.
SELECT CAST(sum(record_count) AS BIGINT) AS record_count, max(way) AS way,
       CAST(sum(IF(topic = :topic AND partition = :partition, record_count, 0)) AS BIGINT) AS of_partition,
       max(IF(topic = :topic AND partition = :partition, replication_p50_ms, NULL)) AS replication_p50_ms,
       max(IF(topic = :topic AND partition = :partition, replication_max_ms, NULL)) AS replication_max_ms
FROM latency
WHERE flow = :flow AND batch_id = :batch_id
