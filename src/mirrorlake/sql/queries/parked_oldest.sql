-- The oldest record of each partition that a flow went on behind, and that was not sent since. Parameters: flow.
SELECT topic, partition, generation, min(offset) AS offset
FROM unsent_parked
WHERE flow = :flow
GROUP BY topic, partition, generation
