-- What an operator has to decide about. Parameters: flow.
SELECT at, kind, topic, partition, first_offset, last_offset, detail
FROM open_incidents
WHERE flow = :flow
ORDER BY at
