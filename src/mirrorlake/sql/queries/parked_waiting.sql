-- The parked records of a flow that were not sent since; whether their target topic lives. Parameters: flow.
SELECT parked.topic, parked.partition, parked.generation, parked.offset, parked.target_topic,
       coalesce(target.lives, true) AS lives
FROM unsent_parked AS parked LEFT JOIN living_targets AS target ON target.flow = parked.flow
  AND target.topic = parked.topic AND target.target_topic = parked.target_topic
WHERE parked.flow = :flow
ORDER BY parked.topic, parked.partition, parked.generation, parked.offset
