-- All incidents that were ever open for a partition: its own, those of its topic, of the flow, and those of the source
-- that another flow of the same source told; is_of_mirror is false of those about another target topic than `mirror` (null:
-- not known), or about an earlier generation of it: what was decided about these is not about what is produced now.
-- Parameters: flow, topic, target_topic, mirror, partition.
WITH newest AS (
  SELECT topic, target_topic, max(target_generation) AS target_generation
  FROM target_generations
  WHERE flow = :flow
  GROUP BY topic, target_topic
)
SELECT incidents.flow, kind, incidents.topic, partition, coalesce(generation, 0) AS generation, first_offset, last_offset, at,
       resolved_at, resolution, detail,
       coalesce(incidents.target_topic = CAST(:mirror AS STRING), true)
         AND coalesce(incidents.target_generation >= newest.target_generation, true) AS is_of_mirror
FROM incidents LEFT JOIN newest ON newest.topic = incidents.topic AND newest.target_topic = incidents.target_topic
WHERE (flow = :flow
       OR startswith(flow, concat(split(:flow, '->')[0], '->'))
          AND kind IN ('topic_recreated', 'source_truncated', 'source_rewound', 'source_refused', 'landing_gap'))
  AND (incidents.topic IS NULL OR incidents.topic IN (:topic, :target_topic)) AND (partition IS NULL OR partition = :partition)
ORDER BY at, kind
