-- Staged records that never reached the target of a flow, per partition and generation of its topic: those behind the end of
-- the map, and those that were given up before it. Records that were on the target already (provenance) do not count, nor
-- those that lie before the flow's start. A staged topic that no flow of its source has begun, or sampled, counts for each of them:
-- which one selects it is in no table, and a host may have died between its landing and its first sample.
-- It reads the coordinates of the whole stage: for the day after an unclean failover.
CREATE OR REPLACE VIEW divergence AS
WITH targets AS (SELECT alias, max_by(cluster_id, last_seen) AS cluster_id FROM clusters GROUP BY alias),
named AS (
  SELECT flow, topic, split(flow, '->')[0] AS source_cluster
  FROM (SELECT flow, topic FROM offset_map UNION SELECT flow, topic FROM positions UNION SELECT flow, topic FROM target_generations
        UNION SELECT flow, topic FROM starts WHERE topic IS NOT NULL)
),
unnamed AS (
  SELECT flows.flow, staged.topic, staged.source_cluster
  FROM (SELECT DISTINCT source_cluster, topic FROM records) AS staged
  JOIN (SELECT flow, split(flow, '->')[0] AS source_cluster FROM objectives UNION SELECT flow, source_cluster FROM named) AS flows
    ON flows.source_cluster = staged.source_cluster
  LEFT JOIN named ON named.source_cluster = staged.source_cluster AND named.topic = staged.topic
  WHERE named.flow IS NULL
),
mirrored AS (
  SELECT one.flow, one.topic, one.source_cluster, targets.cluster_id
  FROM (SELECT flow, topic, source_cluster FROM named UNION SELECT flow, topic, source_cluster FROM unnamed) AS one
  LEFT JOIN targets ON targets.alias = split(one.flow, '->')[1]
),
began AS (
  SELECT flow, topic, partition, generation, min(first_offset) AS first_offset
  FROM starts
  WHERE topic IS NOT NULL
  GROUP BY flow, topic, partition, generation
),
steps AS (
  SELECT flow, topic, partition, generation, source_first AS at, 0 AS is_record, struct(source_first, source_last, stride)
         AS run
  FROM offset_translation
  UNION ALL
  SELECT mirrored.flow, records.topic, records.partition, coalesce(records.generation, 0), records.offset, 1, NULL
  FROM records JOIN mirrored ON mirrored.source_cluster = records.source_cluster AND mirrored.topic = records.topic
  LEFT JOIN began ON began.flow = mirrored.flow AND began.topic = records.topic
    AND began.partition = records.partition AND began.generation = coalesce(records.generation, 0)
  WHERE records.offset >= coalesce(began.first_offset, 0)
    AND NOT coalesce(exists(headers, header -> header.key = 'mirrorlake-provenance'
                                AND CAST(header.value AS STRING) = mirrored.cluster_id), false)
),
met AS (
  SELECT flow, topic, partition, generation, at, is_record, last(run) IGNORE NULLS OVER (
    PARTITION BY flow, topic, partition, generation ORDER BY at, is_record
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS run
  FROM steps
)
SELECT flow, topic, partition, generation, min(at) AS first_offset, max(at) AS last_offset, count(*) AS record_count
FROM met
WHERE is_record = 1 AND (run IS NULL OR at > run.source_last OR (at - run.source_first) % run.stride <> 0)
GROUP BY flow, topic, partition, generation
