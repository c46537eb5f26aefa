-- Close incidents by kind, topic, partition and generation of the source topic, those that an operator stopped too: now, and
-- not before they were opened, nor before `behind` (null: no time), whatever the clocks said. Those `of_mirror` alone that
-- name this target topic and generation: a decision about another mirror stays. Frames: settled (flow, kind, topic,
-- partition, generation, of_mirror, target_topic, target_generation, behind), each once. Parameters: resolution.
MERGE INTO incidents AS known
USING (SELECT *, current_timestamp() AS now FROM {settled}) AS settled
ON known.flow = settled.flow AND known.kind = settled.kind AND known.topic <=> settled.topic
  AND known.partition <=> settled.partition AND coalesce(known.generation, 0) = settled.generation
  AND (NOT settled.of_mirror OR known.target_topic <=> settled.target_topic
                                AND known.target_generation <=> settled.target_generation)
WHEN MATCHED AND (known.resolved_at IS NULL OR known.resolution = 'stop')
  THEN UPDATE SET resolved_at = greatest(settled.now, settled.behind, known.at), resolution = :resolution
