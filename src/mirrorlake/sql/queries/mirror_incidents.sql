-- What stopped partitions of a flow, or is not the same in them: refused records, a lost position, records that the target
-- lost, a map that is behind the target, a hole of the stage, a difference; what waits, and what was decided.
-- target_generation is null where none was noted: what is about the stage alone, and what an earlier version wrote.
-- target_topic is the mirror that it is about: where none was noted the first one, and null of what is about the stage alone;
-- noted_topic is what was noted.
-- Parameters: flow.
WITH first_mirrors AS (
  SELECT topic, min_by(target_topic, started_at) AS name
  FROM target_generations
  WHERE flow = :flow
  GROUP BY topic
)
SELECT incidents.kind, incidents.topic, incidents.partition, coalesce(incidents.generation, 0) AS generation,
       incidents.first_offset, incidents.last_offset, incidents.at, incidents.resolved_at IS NULL AS open,
       incidents.resolution, incidents.target_generation, incidents.target_offset,
       CASE WHEN incidents.kind <> 'stage_trimmed' THEN coalesce(incidents.target_topic, first_mirrors.name) END AS target_topic,
       incidents.target_topic AS noted_topic
FROM incidents LEFT JOIN first_mirrors ON first_mirrors.topic = incidents.topic
WHERE incidents.flow = :flow AND incidents.topic IS NOT NULL
  AND incidents.kind IN (
    'target_refused', 'position_lost', 'target_lost', 'map_behind', 'map_unknown', 'stage_trimmed', 'content_differs')
