-- How much of what each flow has produced is proven by content, and since when. Per topic: records in the map of the
-- newest target topic, those in stretches that were compared without a difference, stretches with a difference, the time
-- of the oldest of these comparisons, and when anything of the topic was compared last. proven_share is rounded down: it is
-- 1 only where all is proven. Nothing is proven of a target topic
-- that is gone, or that was made again and not compared since. Replays and restores, which have a colon in their names, are
-- no flows.
CREATE OR REPLACE VIEW proof_status AS
WITH mapped AS (
  SELECT map.flow, map.topic,
         sum(IF(target.flow IS NULL OR target.target_generation = coalesce(map.target_generation, 0), map.record_count, 0))
           AS records
  FROM offset_map AS map LEFT JOIN living_targets AS target
    ON target.flow = map.flow AND target.topic = map.topic AND target.target_topic = map.target_topic
  WHERE map.flow NOT LIKE '%:%'
  GROUP BY map.flow, map.topic
),
compared AS (
  SELECT flow, topic, CAST(sum(IF(proven, mapped_count, 0)) AS BIGINT) AS proven_records,
         count_if(NOT proven) AS differing_ranges, min(IF(proven, audited_at, NULL)) AS proven_since
  FROM proofs
  GROUP BY flow, topic
),
audited AS (
  SELECT flow, topic, max(audited_at) AS audited_at
  FROM audits
  WHERE first_offset IS NOT NULL
  GROUP BY flow, topic
)
SELECT mapped.flow, mapped.topic, CAST(mapped.records AS BIGINT) AS mapped_records,
       least(coalesce(proven_records, 0), mapped.records) AS proven_records,
       (least(coalesce(proven_records, 0), mapped.records) * 1000000) DIV greatest(1, mapped.records) / 1000000D
         AS proven_share,
       coalesce(differing_ranges, 0) AS differing_ranges, proven_since, audited.audited_at
FROM mapped
LEFT JOIN compared ON compared.flow = mapped.flow AND compared.topic = mapped.topic
LEFT JOIN audited ON audited.flow = mapped.flow AND audited.topic = mapped.topic
