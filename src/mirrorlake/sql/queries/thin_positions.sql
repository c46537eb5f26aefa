-- Of samples taken before a time, leave the newest of each partition and minute; of those taken before an earlier one, the
-- newest of each hour, of each generation by itself. The first one of those of a generation with the lowest start stays: by
-- it landing knows where its log began. So does one that says that a partition could not be sampled any more, if nothing
-- came behind it in that minute or hour. Parameters: minutes_before_ms, hours_before_ms.
MERGE INTO positions AS old
USING (
  SELECT flow, topic, partition, of_generation, slot, newest_at,
         min(first) OVER (PARTITION BY flow, topic, partition, of_generation) AS first
  FROM (
    SELECT flow, topic, partition, coalesce(generation, 0) AS of_generation, slot,
           min(CASE WHEN source_end IS NOT NULL THEN struct(source_start, sampled_at) END) AS first,
           max(CASE WHEN source_end IS NOT NULL THEN sampled_at END) AS newest_at
    FROM (
      SELECT *, CASE WHEN sampled_at < timestamp_millis(:hours_before_ms) THEN date_trunc('HOUR', sampled_at)
                     ELSE date_trunc('MINUTE', sampled_at) END AS slot
      FROM positions
      WHERE sampled_at < timestamp_millis(:minutes_before_ms)
    )
    GROUP BY flow, topic, partition, coalesce(generation, 0), slot
  )
) AS kept
ON old.flow = kept.flow AND old.topic = kept.topic AND old.partition = kept.partition
  AND coalesce(old.generation, 0) = kept.of_generation
  AND old.sampled_at < timestamp_millis(:minutes_before_ms)
  AND CASE WHEN old.sampled_at < timestamp_millis(:hours_before_ms) THEN date_trunc('HOUR', old.sampled_at)
           ELSE date_trunc('MINUTE', old.sampled_at) END = kept.slot
  AND old.sampled_at < kept.newest_at AND old.sampled_at <> kept.first.sampled_at
WHEN MATCHED THEN DELETE
