-- Delete what was noted. Only by coordinates: Delta's log has the text of this, and keeps it. Parameters: source_cluster,
-- topic, first, last (offsets within which it lies), forget_id.
MERGE INTO records
USING (
  SELECT partition, generation, explode(sequence(first_offset, last_offset)) AS offset
  FROM forgotten
  WHERE forget_id = :forget_id AND source_cluster = :source_cluster AND topic = :topic
) AS gone
ON records.source_cluster = :source_cluster AND records.topic = :topic AND records.offset BETWEEN :first AND :last
  AND records.partition = gone.partition AND coalesce(records.generation, 0) = gone.generation
  AND records.offset = gone.offset
WHEN MATCHED THEN DELETE
