-- Note records that a flow is about to go on behind, each once. Frames: refused (as produce.parking.Parked). Parameters:
-- flow.
MERGE INTO parked AS known
USING {refused} AS now
ON known.flow = :flow AND known.topic = now.topic AND known.partition = now.partition AND known.offset = now.offset
  AND known.generation = now.generation AND known.target_topic = now.target_topic
  AND known.target_generation = now.target_generation
WHEN NOT MATCHED THEN INSERT (flow, topic, partition, offset, reason, parked_at, generation, target_topic,
  target_generation, byte_count)
  VALUES (:flow, now.topic, now.partition, now.offset, now.reason, current_timestamp(), now.generation, now.target_topic,
    now.target_generation, now.byte_count)
