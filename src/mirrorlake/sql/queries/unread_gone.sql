-- How many records a flow's map has at or behind target positions that its source has no more: those of a generation of the
-- source topic that is over, from a source offset (cut) on. Frames: gone (topic on the target, partition, offset,
-- generation, cut). Parameters: flow.
SELECT asked.topic, asked.partition, asked.offset,
       CAST(sum(greatest(0L, map.record_count - greatest(
         0L, asked.offset - map.target_first, (asked.cut - map.source_first + map.stride - 1) DIV map.stride)))
         AS BIGINT) AS record_count
FROM offset_translation AS map JOIN {gone} AS asked
  ON asked.topic = map.target_topic AND asked.partition = map.target_partition AND asked.generation = map.generation
WHERE map.flow = :flow AND map.target_last >= asked.offset
GROUP BY asked.topic, asked.partition, asked.offset
