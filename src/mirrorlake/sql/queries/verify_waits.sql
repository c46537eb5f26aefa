-- What holds records of a flow up: incidents that are open, and those that an operator resolved with `stop`. Incidents of
-- the source are about all flows that read from it. Parameters: flow, prefix (of flow names).
SELECT kind, topic, partition, coalesce(generation, 0) AS generation, resolved_at IS NULL AS open,
       first_offset, last_offset, target_topic, target_generation
FROM incidents
WHERE (resolved_at IS NULL OR resolution = 'stop')
  AND (flow = :flow OR startswith(flow, :prefix)
    AND kind IN ('source_truncated', 'source_rewound', 'source_refused', 'topic_recreated', 'landing_failed'))
ORDER BY at
