-- How far replays and restores have written into the living target topics of a flow: the position behind the last record,
-- by partition. `mirrored` is the flow's source topic, `topic` that of the resend. What was sent before the target topic was
-- made again is not there: a resend notes the topic's id when it begins, and where it did not know that, the time says it.
-- Parameters: flow.
WITH begun AS (
  SELECT flow, resource, max(get_json_object(after, '$.topic_id')) AS topic_id
  FROM changes
  WHERE kind IN ('replay', 'restore') AND outcome = 'begun'
  GROUP BY flow, resource
)
SELECT map.flow AS resend, target.topic AS mirrored, map.topic, map.partition, map.target_topic, target.target_generation,
       coalesce(map.target_generation, 0) AS resend_generation, max(map.target_last) + 1 AS target_end
FROM offset_map AS map JOIN living_targets AS target ON target.target_topic = map.target_topic AND target.lives
  LEFT JOIN begun ON begun.flow = map.flow AND begun.resource = map.target_topic
WHERE target.flow = :flow AND map.flow LIKE '%:%' AND split(map.flow, '->')[1] = split(:flow, '->')[1]
  AND coalesce(begun.topic_id = nullif(target.topic_id, ''), map.produced_at >= target.started_at)
GROUP BY ALL
