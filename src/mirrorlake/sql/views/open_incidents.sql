-- What an operator has to decide about.
CREATE OR REPLACE VIEW open_incidents AS
SELECT flow, at, kind, topic, partition, first_offset, last_offset, detail
FROM incidents
WHERE resolved_at IS NULL
