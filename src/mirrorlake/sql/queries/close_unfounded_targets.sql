-- Close incidents about target topics that turn out to be the ones that were noted. Frames: noted (topic,
-- target_generation), each topic once. Parameters: flow.
MERGE INTO incidents AS known
USING (SELECT topic, target_generation, current_timestamp() AS now FROM {noted}) AS noted
ON known.flow = :flow AND known.kind = 'target_recreated' AND known.topic = noted.topic
  AND coalesce(known.target_generation, 0) = noted.target_generation
WHEN MATCHED AND (known.resolved_at IS NULL OR known.resolution IN ('again', 'continue'))
  THEN UPDATE SET resolved_at = noted.now, resolution = 'the topic is the one that it was'
