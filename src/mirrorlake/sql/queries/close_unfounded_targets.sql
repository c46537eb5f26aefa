-- Close incidents about target topics that turn out to be the ones that were noted; and what waits for a decision about
-- others that the same source topics were mirrored to before. Frames: noted (topic, target_topic, target_generation), each
-- topic once. Parameters: flow.
MERGE INTO incidents AS known
USING (SELECT *, current_timestamp() AS now FROM {noted}) AS noted
ON known.flow = :flow AND known.kind = 'target_recreated' AND known.topic = noted.topic
  AND (known.target_topic <> noted.target_topic OR coalesce(known.target_generation, 0) = noted.target_generation)
WHEN MATCHED AND (known.resolved_at IS NULL
                  OR known.resolution IN ('again', 'continue') AND coalesce(known.target_topic = noted.target_topic, true))
  THEN UPDATE SET resolved_at = noted.now, resolution = 'the topic is the one that it was'
