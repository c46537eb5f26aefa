-- What the map has of one partition from a target offset on, in each generation of its source topic: source offsets
-- (inclusive), and how many records. Parameters: flow, topic, partition, target_topic, target_generation, target_offset.
SELECT generation,
       min(source_first + greatest(0L, CAST(:target_offset AS BIGINT) - target_first) * stride) AS first_offset,
       max(source_last) AS last_offset,
       sum(least(record_count, target_last - CAST(:target_offset AS BIGINT) + 1)) AS record_count
FROM offset_translation
WHERE flow = :flow AND topic = :topic AND partition = :partition AND target_topic = :target_topic
  AND target_generation = :target_generation AND target_last >= :target_offset
GROUP BY generation
ORDER BY generation
