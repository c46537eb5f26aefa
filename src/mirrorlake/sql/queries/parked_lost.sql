-- The parked records of a flow that replays had sent, since they were parked, to where the target has lost them.
-- Frames: lost (topic, partition, target_topic, target_generation, target_offset), each partition once. Parameters: flow.
SELECT DISTINCT parked.topic, parked.partition, parked.generation, parked.offset, parked.target_topic,
       parked.target_generation
FROM parked
JOIN {lost} AS lost ON lost.topic = parked.topic AND lost.partition = parked.partition
  AND lost.target_topic = parked.target_topic AND lost.target_generation = parked.target_generation
JOIN offset_translation AS map ON map.topic = parked.topic AND map.partition = parked.partition
  AND map.generation = parked.generation AND map.target_topic = parked.target_topic
  AND parked.offset BETWEEN map.source_first AND map.source_last
WHERE parked.flow = :flow AND parked.replayed_at IS NOT NULL AND map.produced_at >= parked.parked_at
  AND map.flow LIKE 'replay:%' AND split(map.flow, ':')[2] = :flow
  AND (parked.offset - map.source_first) % map.stride = 0
  AND map.target_first + (parked.offset - map.source_first) DIV map.stride >= lost.target_offset
