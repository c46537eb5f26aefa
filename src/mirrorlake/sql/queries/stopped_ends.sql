-- From which source offset on an operator has stopped each generation of each partition of a flow. target_generation is null
-- where none was noted; target_topic is the mirror, where none was noted the first one, and null of what is about the stage
-- alone. Parameters: flow.
WITH first_mirrors AS (
  SELECT topic, min_by(target_topic, started_at) AS name
  FROM target_generations
  WHERE flow = :flow
  GROUP BY topic
)
SELECT incidents.topic, incidents.partition, coalesce(incidents.generation, 0) AS generation, incidents.target_generation,
       CASE WHEN incidents.kind <> 'stage_trimmed' THEN coalesce(incidents.target_topic, first_mirrors.name) END AS target_topic,
       min(incidents.first_offset) AS first_offset
FROM incidents LEFT JOIN first_mirrors ON first_mirrors.topic = incidents.topic
WHERE incidents.flow = :flow AND incidents.resolution = 'stop' AND incidents.topic IS NOT NULL
  AND incidents.partition IS NOT NULL
  AND incidents.kind IN ('target_refused', 'position_lost', 'target_lost', 'map_behind', 'map_unknown', 'stage_trimmed')
GROUP BY ALL
