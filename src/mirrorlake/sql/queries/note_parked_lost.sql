-- Note that parked records of a flow wait again: the target has lost what replays had sent. Frames: waiting (topic,
-- partition, generation, offset, target_topic, target_generation). Parameters: flow.
MERGE INTO parked AS known
USING {waiting} AS now
ON known.flow = :flow AND known.topic = now.topic AND known.partition = now.partition AND known.offset = now.offset
  AND known.generation = now.generation AND known.target_topic = now.target_topic
  AND known.target_generation = now.target_generation
WHEN MATCHED THEN UPDATE SET replayed_at = NULL
