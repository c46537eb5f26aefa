-- The oldest record of each partition that a flow went on behind, and that was not sent since: of the newest generation of
-- its target topic, since nothing sends those of one that is over. Parameters: flow.
SELECT topic, partition, generation, min(offset) AS offset
FROM unsent_parked AS parked
WHERE flow = :flow
  AND NOT EXISTS (
    SELECT 1 FROM target_generations AS newer
    WHERE newer.flow = parked.flow AND newer.topic = parked.topic AND newer.target_topic = parked.target_topic
      AND newer.target_generation > parked.target_generation)
GROUP BY topic, partition, generation
