-- What is open about a flow, or (*) about the lake as a whole, oldest first. Parameters: flow.
SELECT at, kind, topic, partition, detail
FROM open_incidents
WHERE flow IN (:flow, '*')
ORDER BY at
