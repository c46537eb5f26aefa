-- What an operator has to decide about, or know: of a flow, or (*) of the lake as a whole. Parameters: flow.
SELECT at, kind, topic, partition, first_offset, last_offset, detail
FROM open_incidents
WHERE flow IN (:flow, '*')
ORDER BY at
