-- Close incidents by kind, topic, partition and generation of the source topic, those that an operator stopped too: now, and
-- not before they were opened, nor before `behind` (null: no time), whatever the clocks said. Frames: settled (flow, kind,
-- topic, partition, generation, behind), each once. Parameters: resolution.
MERGE INTO incidents AS known
USING (SELECT *, current_timestamp() AS now FROM {settled}) AS settled
ON known.flow = settled.flow AND known.kind = settled.kind AND known.topic <=> settled.topic
  AND known.partition <=> settled.partition AND coalesce(known.generation, 0) = settled.generation
WHEN MATCHED AND (known.resolved_at IS NULL OR known.resolution = 'stop')
  THEN UPDATE SET resolved_at = greatest(settled.now, settled.behind, known.at), resolution = :resolution
