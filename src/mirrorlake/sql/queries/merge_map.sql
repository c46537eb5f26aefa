-- Make few rows of many: neighbouring rows of `offset_map` that were produced before a time become rows of up to
-- :max_segments segments. Every pair of offsets stays what it was; which batch produced it, and when, is given up. One
-- commit. Rows that are full stay, so that each time only what came since is rewritten.
-- Parameters: cutoff_ms, max_segments.
MERGE INTO offset_map AS map
USING (
  WITH sized AS (
    SELECT * EXCEPT (segments),
           IF(size(segments) < :max_segments, segments, NULL) AS segments,
           struct(flow, topic, partition, coalesce(generation, 0) AS generation, target_topic, target_partition,
                  coalesce(target_generation, 0) AS target_generation) AS key,
           coalesce(unix_millis(produced_at), 0L) < :cutoff_ms AND size(segments) < :max_segments AS small
    FROM offset_map
  ),
  met AS (
    SELECT *, lag(struct(small, source_last, target_last)) OVER (PARTITION BY key ORDER BY source_first) AS before
    FROM sized
  ),
  -- A chunk is rows that may become one: they rise on both sides, and no other row lies in between.
  cut AS (
    SELECT *, count_if(NOT coalesce(
        small AND before.small AND source_first > before.source_last AND target_first > before.target_last, false)) OVER (
      PARTITION BY key ORDER BY source_first ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS chunk
    FROM met
  ),
  counted AS (SELECT *, count(*) OVER (PARTITION BY key, chunk) AS row_count FROM cut),
  gone AS (SELECT * FROM counted WHERE row_count > 1),
  parts AS (
    SELECT gone.*, segment,
           lag(segment) OVER (PARTITION BY key, chunk ORDER BY segment.source_first) AS left
    FROM gone LATERAL VIEW explode(segments) AS segment
  ),
  -- A segment group is segments that go on in the same stride on the source, without a gap on the target: one segment.
  grouped AS (
    SELECT *, count_if(NOT coalesce(
        segment.stride = left.stride
        AND segment.source_first = left.source_first + left.record_count * left.stride
        AND segment.target_first = left.target_first + left.record_count, false)) OVER (
      PARTITION BY key, chunk ORDER BY segment.source_first
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS segment_group
    FROM parts
  ),
  joined AS (
    SELECT key, chunk, (segment_group - 1) DIV :max_segments AS pack,
           struct(min(segment.source_first) AS source_first, min(segment.stride) AS stride,
                  min(segment.target_first) AS target_first, sum(segment.record_count) AS record_count) AS segment,
           max(produced_at) AS produced_at, max(batch_id) AS batch_id, max(stage_version) AS stage_version,
           min(coalesce(first_batch_id, batch_id)) AS first_batch_id
    FROM grouped
    GROUP BY key, chunk, segment_group
  ),
  packed AS (
    SELECT key, array_sort(collect_list(segment)) AS segments, sum(segment.record_count) AS record_count,
           max(produced_at) AS produced_at, max(batch_id) AS batch_id, max(stage_version) AS stage_version,
           min(first_batch_id) AS first_batch_id
    FROM joined
    GROUP BY key, chunk, pack
  ),
  made AS (SELECT *, segments[0] AS first, element_at(segments, -1) AS last FROM packed)
  SELECT true AS is_gone, key, source_first, source_last, target_first, target_last, record_count, produced_at, batch_id,
         stage_version, first_batch_id,
         CAST(NULL AS ARRAY<STRUCT<source_first: BIGINT, stride: BIGINT, target_first: BIGINT, record_count: BIGINT>>)
           AS segments
  FROM gone
  UNION ALL
  SELECT false, key, first.source_first, last.source_first + (last.record_count - 1) * last.stride, first.target_first,
         last.target_first + last.record_count - 1, record_count, produced_at, batch_id, stage_version, first_batch_id,
         segments
  FROM made
) AS old
ON old.is_gone AND map.flow = old.key.flow AND map.topic = old.key.topic AND map.partition = old.key.partition
  AND coalesce(map.generation, 0) = old.key.generation
  AND map.target_topic = old.key.target_topic AND map.target_partition = old.key.target_partition
  AND coalesce(map.target_generation, 0) = old.key.target_generation
  AND map.source_first = old.source_first AND map.source_last = old.source_last
  AND map.target_first = old.target_first AND map.target_last = old.target_last AND map.batch_id = old.batch_id
WHEN MATCHED THEN DELETE
WHEN NOT MATCHED AND NOT old.is_gone THEN INSERT (
  flow, topic, partition, generation, source_first, source_last,
  target_topic, target_partition, target_generation, target_first, target_last,
  record_count, produced_at, batch_id, stage_version, first_batch_id, segments
) VALUES (
  old.key.flow, old.key.topic, old.key.partition, old.key.generation, old.source_first, old.source_last,
  old.key.target_topic, old.key.target_partition, old.key.target_generation, old.target_first, old.target_last,
  old.record_count, old.produced_at, old.batch_id, old.stage_version, old.first_batch_id, old.segments
)
