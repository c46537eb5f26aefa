-- All incidents that were ever open for a partition: its own, those of its topic, of the flow, and those of the source
-- that another flow of the same source told. Parameters: flow, topic, target_topic, partition.
SELECT flow, kind, topic, partition, coalesce(generation, 0) AS generation, first_offset, last_offset, at, resolved_at, resolution, detail
FROM incidents
WHERE (flow = :flow
       OR startswith(flow, concat(split(:flow, '->')[0], '->'))
          AND kind IN ('topic_recreated', 'source_truncated', 'source_rewound', 'source_refused', 'landing_gap'))
  AND (topic IS NULL OR topic IN (:topic, :target_topic)) AND (partition IS NULL OR partition = :partition)
ORDER BY at, kind
