-- Differences that an operator knows of; target_topic is the mirror, where none was noted the first one. Parameters: flow.
WITH first_mirrors AS (
  SELECT topic, min_by(target_topic, started_at) AS name
  FROM target_generations
  WHERE flow = :flow
  GROUP BY topic
)
SELECT incidents.topic, incidents.partition, coalesce(incidents.generation, 0) AS generation,
       coalesce(incidents.target_topic, first_mirrors.name) AS target_topic,
       coalesce(incidents.target_generation, 0) AS target_generation, incidents.first_offset, incidents.last_offset
FROM incidents LEFT JOIN first_mirrors ON first_mirrors.topic = incidents.topic
WHERE incidents.flow = :flow AND incidents.kind = 'content_differs' AND incidents.resolution = 'acknowledge'
