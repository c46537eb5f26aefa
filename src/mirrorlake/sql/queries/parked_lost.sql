-- The parked records of a flow that replays had sent, since they were parked, to where the target has lost them: to the
-- same topic, by the id that a replay notes when it begins; where it did not know that, the time says since when.
-- Frames: lost (topic, partition, target_topic, target_generation, target_offset), each partition once. Parameters: flow.
WITH begun AS (
  SELECT flow, resource, max(get_json_object(after, '$.topic_id')) AS topic_id
  FROM changes
  WHERE kind = 'replay' AND outcome = 'begun'
  GROUP BY flow, resource
)
SELECT DISTINCT parked.topic, parked.partition, parked.generation, parked.offset, parked.target_topic,
       parked.target_generation
FROM parked
JOIN {lost} AS lost ON lost.topic = parked.topic AND lost.partition = parked.partition
  AND lost.target_topic = parked.target_topic AND lost.target_generation = parked.target_generation
JOIN offset_translation AS map ON map.topic = parked.topic AND map.partition = parked.partition
  AND map.generation = parked.generation AND map.target_topic = parked.target_topic
  AND parked.offset BETWEEN map.source_first AND map.source_last
LEFT JOIN begun ON begun.flow = map.flow AND begun.resource = map.target_topic
LEFT JOIN living_targets AS living ON living.flow = parked.flow AND living.topic = parked.topic
  AND living.target_topic = parked.target_topic
WHERE parked.flow = :flow AND parked.replayed_at IS NOT NULL
  AND coalesce(begun.topic_id = nullif(living.topic_id, ''), map.produced_at >= parked.parked_at)
  AND map.flow LIKE 'replay:%' AND split(map.flow, ':')[2] = :flow
  AND (parked.offset - map.source_first) % map.stride = 0
  AND map.target_first + (parked.offset - map.source_first) DIV map.stride >= lost.target_offset
