-- The oldest record of each partition that a flow went on behind, and that was not sent since. Parameters: flow.
SELECT topic, partition, generation, min(offset) AS offset
FROM parked
WHERE flow = :flow AND replayed_at IS NULL
  AND NOT EXISTS (
    SELECT 1 FROM forgotten
    WHERE forgotten.source_cluster = split(parked.flow, '->')[0] AND forgotten.topic = parked.topic
      AND forgotten.partition = parked.partition AND forgotten.generation = parked.generation
      AND parked.offset BETWEEN forgotten.first_offset AND forgotten.last_offset)
GROUP BY topic, partition, generation
