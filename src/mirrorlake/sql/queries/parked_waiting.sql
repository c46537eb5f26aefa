-- The parked records of a flow that were not sent since, of target topics that live. Parameters: flow.
SELECT parked.topic, parked.partition, parked.generation, parked.offset, parked.target_topic
FROM unsent_parked AS parked LEFT JOIN living_targets AS target ON target.flow = parked.flow
  AND target.topic = parked.topic AND target.target_topic = parked.target_topic
WHERE parked.flow = :flow
  AND coalesce(target.lives, true)
ORDER BY parked.topic, parked.partition, parked.generation, parked.offset
