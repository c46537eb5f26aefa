-- Note which topics of flows hold heartbeats. Frames: noted (flow, pattern).
MERGE INTO objectives AS known
USING {noted} AS now
ON known.flow = now.flow
WHEN MATCHED THEN UPDATE SET heartbeat_topics = now.pattern
