-- The target topics of a flow that other flows write to as well. Parameters: flow.
SELECT DISTINCT mine.target_topic
FROM (SELECT target_topic FROM offset_map WHERE flow = :flow GROUP BY target_topic) AS mine
  JOIN (SELECT target_topic, split(flow, '->')[1] AS cluster FROM offset_map WHERE flow <> :flow GROUP BY ALL) AS others
  ON others.target_topic = mine.target_topic AND others.cluster = split(:flow, '->')[1]
