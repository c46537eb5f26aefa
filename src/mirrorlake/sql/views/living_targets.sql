-- The newest generation of every target topic of a flow. lives is false while no operator has decided about a topic that is gone or
-- was made again, and until what was decided has begun; target offsets then mean nothing. partitions is how many the
-- topic had when it was noted.
CREATE OR REPLACE VIEW living_targets AS
WITH newest AS (
  SELECT flow, topic, target_topic, max(target_generation) AS target_generation,
         max_by(topic_id, target_generation) AS topic_id, max_by(started_at, target_generation) AS started_at,
         max_by(size(began), target_generation) AS partitions
  FROM target_generations
  GROUP BY flow, topic, target_topic
),
ended AS (
  SELECT DISTINCT newest.flow, newest.topic, newest.target_topic
  FROM newest JOIN incidents ON incidents.flow = newest.flow AND incidents.topic = newest.topic
    AND coalesce(incidents.target_topic, newest.target_topic) = newest.target_topic
    AND incidents.target_generation = newest.target_generation
  WHERE kind = 'target_recreated' AND (resolved_at IS NULL OR resolution IN ('again', 'continue', 'stop'))
)
SELECT newest.flow, newest.topic, newest.target_topic, newest.target_generation, newest.topic_id, newest.started_at,
       newest.partitions, ended.flow IS NULL AS lives
FROM newest LEFT JOIN ended
  ON ended.flow = newest.flow AND ended.topic = newest.topic AND ended.target_topic = newest.target_topic
