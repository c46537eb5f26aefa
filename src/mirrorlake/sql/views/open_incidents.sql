-- The incidents that are open: what an operator has to know or decide about.
CREATE OR REPLACE VIEW open_incidents AS
SELECT flow, at, kind, topic, partition, first_offset, last_offset, detail, coalesce(generation, 0) AS generation,
       target_generation, target_topic
FROM incidents
WHERE resolved_at IS NULL
