-- Source, stage, map and target of every partition of a flow, side by side. What the source and the target have is known
-- from the newest sample; nothing is where none is left, since the partition is gone or no process has run the flow for a month.
-- Reads the coordinates of all staged records of the flow's topics. Records that provenance left
-- out, since they came from the target, count as not_mapped only where the view divergence says so. not_produced goes by the
-- sample, and is null where it is older than the map: records that left the stage before they were produced are in no
-- count of staged ones. not_staged counts what lies in or behind an open transaction too. Parameters: flow.
WITH missing AS (
  SELECT topic, partition, sum(record_count) AS records, min(first_offset) AS first_offset
  FROM divergence
  WHERE flow = :flow
  GROUP BY topic, partition
),
staged AS (
  SELECT topic, partition, count(*) AS records, count(DISTINCT struct(coalesce(generation, 0) AS generation, offset)) AS distinct_records,
         min(offset) AS first_offset, max(offset) AS last_offset, max(landed_at) AS landed_at
  FROM records
  WHERE source_cluster = split(:flow, '->')[0]
    AND topic IN (SELECT topic FROM offset_map WHERE flow = :flow UNION SELECT topic FROM positions WHERE flow = :flow
                  UNION SELECT topic FROM missing)
  GROUP BY topic, partition
),
lag AS (
  SELECT *, greatest(source_end, coalesce(source_high_watermark, source_end)) AS log_end
  FROM replication_lag
  WHERE flow = :flow
),
-- What an earlier target topic got, as under another policy, does not count for where the one of now ends.
mapped AS (
  SELECT map.topic, map.partition, sum(map.record_count) AS records,
         max(CASE WHEN map.target_topic = coalesce(lag.target_topic, map.target_topic) THEN map.target_last END) AS target_last,
         max(map.produced_at) AS produced_at
  FROM offset_translation AS map LEFT JOIN lag ON lag.topic = map.topic AND lag.partition = map.partition
  WHERE map.flow = :flow
  GROUP BY map.topic, map.partition
),
sides AS (
  SELECT
    coalesce(lag.topic, staged.topic) AS topic,
    coalesce(lag.partition, staged.partition) AS partition,
    lag.source_start,
    lag.source_end,
    lag.staged_end,
    coalesce(staged.records, 0) AS staged,
    coalesce(staged.records - staged.distinct_records, 0) AS staged_twice,
    coalesce(mapped.records, 0) AS mapped,
    lag.target_end,
    mapped.target_last,
    coalesce(missing.records, 0) AS not_mapped,
    missing.first_offset AS first_not_mapped,
    greatest(0, lag.log_end - greatest(lag.staged_end, lag.source_start)) AS not_staged,
    CASE WHEN lag.sampled_at >= coalesce(mapped.produced_at, lag.sampled_at)
         THEN greatest(0, lag.lag_records - greatest(0, lag.source_end - greatest(lag.staged_end, lag.source_start)))
         END AS not_produced,
    staged.landed_at,
    mapped.produced_at,
    lag.sampled_at
  FROM lag
  FULL OUTER JOIN staged ON staged.topic = lag.topic AND staged.partition = lag.partition
  LEFT JOIN mapped
    ON mapped.topic = coalesce(lag.topic, staged.topic) AND mapped.partition = coalesce(lag.partition, staged.partition)
  LEFT JOIN missing
    ON missing.topic = coalesce(lag.topic, staged.topic) AND missing.partition = coalesce(lag.partition, staged.partition)
)
SELECT
  topic,
  partition,
  CASE
    WHEN staged_twice > 0 THEN 'staged twice'
    WHEN target_end <= target_last THEN 'the target has lost records'
    WHEN not_mapped > 0 OR not_produced > 0 THEN 'not on the target'
    WHEN source_end IS NULL THEN 'staged, but the source is not looked at any more'
    WHEN mapped > 0 AND target_end IS NULL THEN 'the target did not say what it has'
    WHEN not_staged > 0 THEN 'not staged'
    ELSE 'complete'
  END AS verdict,
  source_start,
  source_end,
  staged_end,
  staged,
  staged_twice,
  mapped,
  target_last,
  target_end,
  not_staged,
  not_produced,
  not_mapped,
  first_not_mapped,
  landed_at,
  produced_at,
  sampled_at
FROM sides
ORDER BY verdict = 'complete', topic, partition
