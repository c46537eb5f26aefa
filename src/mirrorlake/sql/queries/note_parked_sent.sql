-- Note that parked records of a flow were sent all the same. Frames: sent (topic, partition, generation, offset,
-- target_topic). Parameters: flow.
MERGE INTO parked AS known
USING {sent} AS now
ON known.flow = :flow AND known.topic = now.topic AND known.partition = now.partition AND known.offset = now.offset
  AND known.generation = now.generation AND known.target_topic = now.target_topic AND known.replayed_at IS NULL
WHEN MATCHED THEN UPDATE SET replayed_at = current_timestamp()
