-- What other flows wrote into some stretches of target topics of the same cluster. Frames: stretches (target_topic,
-- target_partition, first, last). Parameters: flow.
SELECT map.target_topic, map.target_partition, greatest(map.target_first, stretch.first) AS first,
       least(map.target_last, stretch.last) AS last
FROM offset_translation AS map JOIN (SELECT * FROM {stretches}) AS stretch
  ON stretch.target_topic = map.target_topic AND stretch.target_partition = map.target_partition
WHERE map.flow <> :flow AND split(map.flow, '->')[1] = split(:flow, '->')[1]
  AND map.target_last >= stretch.first AND map.target_first <= stretch.last
