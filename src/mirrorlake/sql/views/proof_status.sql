-- How much of what each flow has produced is proven by content, and since when. Per topic: records in the map of the
-- newest target topic, those in stretches that were compared without a difference, stretches with a difference, the time
-- of the oldest of these comparisons, and when anything of the topic was compared last. gone_records lie in such stretches,
-- and are not proven, since nothing was left to compare them with (`proofs.gone_count`). proven_share is rounded down: it is
-- 1 only where all records of the map are proven. Nothing is proven of a target topic that is gone, or that was made again and not compared
-- since. Replays and restores, which have a colon in their names, are no flows.
CREATE OR REPLACE VIEW proof_status AS
WITH compared AS (
  SELECT flow, topic, partition, generation, target_generation, target_topic, first_offset, last_offset, proven, audited_at, gone_count,
         IF(first_offset = lag(last_offset) OVER (PARTITION BY flow, topic, partition, generation, target_generation,
              target_topic, proven ORDER BY first_offset) + 1, 0, 1) AS begins
  FROM proofs
),
-- neighbours as one, which keeps the join with the map small
stretches AS (
  SELECT flow, topic, partition, generation, target_generation, target_topic, min(first_offset) AS first,
         max(last_offset) AS last
  FROM (
    SELECT *, sum(begins) OVER (PARTITION BY flow, topic, partition, generation, target_generation, target_topic
                                ORDER BY first_offset) AS stretch
    FROM compared
    WHERE proven
  )
  GROUP BY flow, topic, partition, generation, target_generation, target_topic, stretch
),
rows_of_map AS (
  SELECT map.flow, map.topic, map.partition, coalesce(map.generation, 0) AS generation, map.target_topic,
         coalesce(map.target_generation, 0) AS target_generation, map.source_first, map.source_last, map.segments,
         IF(target.flow IS NULL OR target.target_generation = coalesce(map.target_generation, 0), map.record_count, 0)
           AS records
  FROM offset_map AS map LEFT JOIN living_targets AS target
    ON target.flow = map.flow AND target.topic = map.topic AND target.target_topic = map.target_topic
  WHERE map.flow NOT LIKE '%:%'
),
mapped AS (
  SELECT flow, topic, CAST(sum(records) AS BIGINT) AS records
  FROM rows_of_map
  GROUP BY flow, topic
),
met AS (
  SELECT map.flow, map.topic, map.records, map.segments, stretch.first, stretch.last,
         stretch.first <= map.source_first AND map.source_last <= stretch.last AS is_within
  FROM rows_of_map AS map JOIN stretches AS stretch
    ON stretch.flow = map.flow AND stretch.topic = map.topic AND stretch.partition = map.partition
    AND stretch.generation = map.generation AND stretch.target_generation = map.target_generation
    AND stretch.target_topic = map.target_topic
    AND stretch.first <= map.source_last AND map.source_first <= stretch.last
  WHERE map.records > 0
),
proven AS (
  SELECT flow, topic, CAST(sum(records) AS BIGINT) AS records
  FROM (
    SELECT flow, topic, records FROM met WHERE is_within
    UNION ALL
    SELECT flow, topic, least(one.record_count, (last - one.source_first) DIV one.stride + 1)
             - greatest(0L, (first - one.source_first + one.stride - 1) DIV one.stride) AS records
    FROM met LATERAL VIEW explode(segments) AS one
    WHERE NOT is_within AND one.source_first <= last AND one.source_first + (one.record_count - 1) * one.stride >= first
  )
  GROUP BY flow, topic
),
differing AS (
  SELECT flow, topic, CAST(count_if(NOT proven) AS BIGINT) AS differing_ranges,
         min(IF(proven, audited_at, NULL)) AS proven_since, CAST(sum(IF(proven, gone_count, 0L)) AS BIGINT) AS gone
  FROM compared
  GROUP BY flow, topic
),
audited AS (
  SELECT flow, topic, max(audited_at) AS audited_at
  FROM audits
  WHERE first_offset IS NOT NULL
  GROUP BY flow, topic
)
SELECT flow, topic, mapped_records, whole_records - gone_records AS proven_records,
       ((whole_records - gone_records) * 1000000) DIV greatest(1L, mapped_records) / 1000000D AS proven_share,
       differing_ranges, proven_since, audited_at, gone_records
FROM (
  SELECT mapped.flow, mapped.topic, mapped.records AS mapped_records, coalesce(proven.records, 0L) AS whole_records,
         least(coalesce(gone, 0L), coalesce(proven.records, 0L)) AS gone_records,
         coalesce(differing_ranges, 0L) AS differing_ranges, proven_since, audited.audited_at
  FROM mapped
  LEFT JOIN proven ON proven.flow = mapped.flow AND proven.topic = mapped.topic
  LEFT JOIN differing ON differing.flow = mapped.flow AND differing.topic = mapped.topic
  LEFT JOIN audited ON audited.flow = mapped.flow AND audited.topic = mapped.topic
)
