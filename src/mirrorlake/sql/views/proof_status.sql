-- How much of what each flow has produced is proven by content, and since when. Per topic: records in the map of the
-- newest target topic, those in stretches that were compared without a difference, stretches with a difference, the time
-- of the oldest of these comparisons, and when anything of the topic was compared last. proven_share is rounded down: it is
-- 1 only where all is proven. Of a stretch of which a part was compared again the records are an estimate (`proofs`): it
-- stands for none of another partition, nor for those behind all that is proven. Nothing is proven of a target topic
-- that is gone, or that was made again and not compared since. Replays and restores, which have a colon in their names, are
-- no flows.
CREATE OR REPLACE VIEW proof_status AS
WITH compared AS (
  SELECT flow, topic, partition, generation, sum(IF(proven, mapped_count, 0)) AS proven_records,
         max(IF(proven, last_offset, NULL)) AS proven_last, count_if(NOT proven) AS differing_ranges,
         min(IF(proven, audited_at, NULL)) AS proven_since
  FROM proofs
  GROUP BY flow, topic, partition, generation
),
rows_of_map AS (
  SELECT map.flow, map.topic, map.partition, coalesce(map.generation, 0) AS generation, map.source_first, map.source_last,
         IF(target.flow IS NULL OR target.target_generation = coalesce(map.target_generation, 0), map.record_count, 0)
           AS records
  FROM offset_map AS map LEFT JOIN living_targets AS target
    ON target.flow = map.flow AND target.topic = map.topic AND target.target_topic = map.target_topic
  WHERE map.flow NOT LIKE '%:%'
),
-- reached: at most so many records are proven; of the row that goes on behind what is proven at least one is not.
mapped AS (
  SELECT map.flow, map.topic, map.partition, map.generation, sum(map.records) AS records,
         max(compared.proven_records) AS proven_records,
         sum(IF(map.source_first <= compared.proven_last, map.records, 0))
           - max(IF(map.records > 0 AND map.source_first <= compared.proven_last
                      AND map.source_last > compared.proven_last, 1, 0)) AS reached
  FROM rows_of_map AS map LEFT JOIN compared ON compared.flow = map.flow AND compared.topic = map.topic
    AND compared.partition = map.partition AND compared.generation = map.generation
  GROUP BY map.flow, map.topic, map.partition, map.generation
),
topics AS (
  SELECT flow, topic, CAST(sum(records) AS BIGINT) AS records,
         CAST(sum(least(coalesce(proven_records, 0), coalesce(reached, 0))) AS BIGINT) AS proven_records
  FROM mapped
  GROUP BY flow, topic
),
differing AS (
  SELECT flow, topic, CAST(sum(differing_ranges) AS BIGINT) AS differing_ranges, min(proven_since) AS proven_since
  FROM compared
  GROUP BY flow, topic
),
audited AS (
  SELECT flow, topic, max(audited_at) AS audited_at
  FROM audits
  WHERE first_offset IS NOT NULL
  GROUP BY flow, topic
)
SELECT topics.flow, topics.topic, topics.records AS mapped_records, proven_records,
       (proven_records * 1000000) DIV greatest(1L, topics.records) / 1000000D AS proven_share,
       coalesce(differing_ranges, 0L) AS differing_ranges, proven_since, audited.audited_at
FROM topics
LEFT JOIN differing ON differing.flow = topics.flow AND differing.topic = topics.topic
LEFT JOIN audited ON audited.flow = topics.flow AND audited.topic = topics.topic
