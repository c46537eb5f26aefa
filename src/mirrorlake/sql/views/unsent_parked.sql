-- The parked records that were not sent since, and that no one has deleted from the stage: of the newest generation of their
-- target topic, since nothing sends those of one that is over.
CREATE OR REPLACE VIEW unsent_parked AS
SELECT flow, topic, partition, generation, offset, target_topic, target_generation
FROM parked
WHERE replayed_at IS NULL
  AND NOT EXISTS (
    SELECT 1 FROM forgotten
    WHERE forgotten.source_cluster = split(parked.flow, '->')[0] AND forgotten.topic = parked.topic
      AND forgotten.partition = parked.partition AND forgotten.generation = parked.generation
      AND parked.offset BETWEEN forgotten.first_offset AND forgotten.last_offset)
  AND NOT EXISTS (
    SELECT 1 FROM target_generations AS newer
    WHERE newer.flow = parked.flow AND newer.topic = parked.topic AND newer.target_topic = parked.target_topic
      AND newer.target_generation > parked.target_generation)
