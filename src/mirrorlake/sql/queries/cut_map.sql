-- Take out of the map what a target has lost of partitions: all pairs from a target offset on. One commit; doing it again
-- changes nothing as long as nothing was produced there since.
-- Frames: lost (topic, partition, target_topic, target_generation, target_offset), each partition once. Parameters: flow.
MERGE INTO offset_map AS map
USING (
  SELECT flow, topic, partition, target_topic, target_partition, coalesce(target_generation, 0) AS target_generation,
         target_first, batch_id, count_if(is_kept) AS kept_count,
         sum(CASE WHEN is_kept THEN record_count ELSE 0 END) AS record_count,
         max(CASE WHEN is_kept THEN source_first + (record_count - 1) * stride END) AS source_last,
         max(CASE WHEN is_kept THEN one_first + record_count - 1 END) AS target_last,
         array_sort(collect_list(CASE WHEN is_kept THEN named_struct(
           'source_first', source_first, 'stride', stride, 'target_first', one_first, 'record_count', record_count)
         END)) AS segments
  FROM (
    SELECT map.flow, map.topic, map.partition, map.target_topic, map.target_partition, map.target_generation,
           map.target_first, map.batch_id, one.source_first, one.stride, one.target_first AS one_first,
           least(one.record_count, map.target_offset - one.target_first) AS record_count,
           one.target_first < map.target_offset AS is_kept
    FROM (
      SELECT map.flow, map.topic, map.partition, map.target_topic, map.target_partition, map.target_generation,
             map.target_first, map.batch_id, map.segments, lost.target_offset
      FROM offset_map AS map JOIN {lost} AS lost
        ON map.topic = lost.topic AND map.partition = lost.partition AND map.target_topic = lost.target_topic
        AND coalesce(map.target_generation, 0) = lost.target_generation AND map.target_last >= lost.target_offset
      WHERE map.flow = :flow
    ) AS map LATERAL VIEW explode(map.segments) AS one
  )
  GROUP BY ALL
) AS kept
ON map.flow = kept.flow AND map.topic = kept.topic AND map.partition = kept.partition
  AND map.target_topic = kept.target_topic AND map.target_partition = kept.target_partition
  AND coalesce(map.target_generation, 0) = kept.target_generation
  AND map.target_first = kept.target_first AND map.batch_id = kept.batch_id
WHEN MATCHED AND kept.kept_count = 0 THEN DELETE
WHEN MATCHED THEN UPDATE SET
  source_last = kept.source_last, target_last = kept.target_last, record_count = kept.record_count,
  segments = kept.segments
