-- How many incidents of this kind and place are open. Parameters: flow, kind, topic, partition.
SELECT count(*) AS open
FROM open_incidents
WHERE flow = :flow AND kind = :kind AND topic <=> CAST(:topic AS STRING) AND partition <=> CAST(:partition AS INT)
