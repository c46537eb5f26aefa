-- A staged record without its payload, once for each generation of its topic that has the offset. is_echo: provenance
-- says that it came from the target, so the flow leaves it out. Parameters: flow, topic, partition, offset.
WITH target AS (
  SELECT max_by(cluster_id, last_seen) AS cluster_id FROM clusters WHERE alias = split(:flow, '->')[1]
)
SELECT coalesce(generation, 0) AS generation, timestamp AS written_at, timestamp_ms, timestamp_type, landed_at, batch_id,
       octet_length(key) AS key_bytes, octet_length(value) AS value_bytes,
       coalesce(exists(headers, header -> header.key = 'mirrorlake-provenance'
                       AND CAST(header.value AS STRING) = target.cluster_id), false) AS is_echo
FROM records CROSS JOIN target
WHERE source_cluster = split(:flow, '->')[0] AND topic = :topic AND partition = :partition AND offset = :offset
ORDER BY generation DESC
