-- Close incidents by kind, topic, partition and generation of the source topic, those that an operator stopped too.
-- Frames: settled (flow, kind, topic, partition, generation), each once. Parameters: resolution.
MERGE INTO incidents AS known
USING (SELECT flow, kind, topic, partition, generation, current_timestamp() AS now FROM {settled}) AS settled
ON known.flow = settled.flow AND known.kind = settled.kind AND known.topic <=> settled.topic
  AND known.partition <=> settled.partition AND coalesce(known.generation, 0) = settled.generation
WHEN MATCHED AND (known.resolved_at IS NULL OR known.resolution = 'stop')
  THEN UPDATE SET resolved_at = settled.now, resolution = :resolution
