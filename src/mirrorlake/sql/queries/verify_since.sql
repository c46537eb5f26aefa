-- The first source offset of each partition that a flow brought to its target at or behind a time. Parameters: flow,
-- since.
SELECT topic, partition, generation, min(source_first) AS source_first
FROM offset_translation
WHERE flow = :flow AND produced_at >= CAST(:since AS TIMESTAMP)
GROUP BY topic, partition, generation
