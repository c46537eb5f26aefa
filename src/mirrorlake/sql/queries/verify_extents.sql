-- What the map of a flow holds of each partition, in the living generation of its target topic: ends are positions,
-- since is when the first of it that is behind a time was produced. Parameters: flow.
SELECT topic, partition, generation, target_topic, target_generation, min(source_first) AS source_first,
       max(source_last) + 1 AS source_end, min(target_first) AS target_first, max(target_last) + 1 AS target_end
FROM offset_translation
WHERE flow = :flow
GROUP BY topic, partition, generation, target_topic, target_generation
