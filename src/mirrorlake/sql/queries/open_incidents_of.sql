-- What waits for a decision about a flow, oldest first. Parameters: flow.
SELECT at, kind, topic, partition, detail
FROM open_incidents
WHERE flow = :flow
ORDER BY at
