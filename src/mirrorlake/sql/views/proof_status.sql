-- How much of what each flow has produced is proven by content, and since when. Per topic: records in the map now, those in
-- stretches that were compared without a difference, stretches with a difference, and the times of the oldest and the
-- newest of these comparisons. Replays and restores, which have a colon in their names, are no flows.
CREATE OR REPLACE VIEW proof_status AS
WITH mapped AS (
  SELECT map.flow, map.topic, sum(map.record_count) AS records
  FROM offset_map AS map LEFT JOIN living_targets AS target
    ON target.flow = map.flow AND target.topic = map.topic AND target.target_topic = map.target_topic
  WHERE map.flow NOT LIKE '%:%'
    AND (target.flow IS NULL OR target.lives AND target.target_generation = coalesce(map.target_generation, 0))
  GROUP BY map.flow, map.topic
),
living AS (
  SELECT flow, topic, partition, max(target_generation) AS target_generation
  FROM proofs
  GROUP BY flow, topic, partition
),
compared AS (
  SELECT proofs.flow, proofs.topic, CAST(sum(IF(proven, record_count, 0)) AS BIGINT) AS proven_records,
         count_if(NOT proven) AS differing_ranges, min(IF(proven, audited_at, NULL)) AS proven_since,
         max(audited_at) AS audited_at
  FROM proofs JOIN living ON living.flow = proofs.flow AND living.topic = proofs.topic
    AND living.partition = proofs.partition AND living.target_generation = proofs.target_generation
  GROUP BY proofs.flow, proofs.topic
)
SELECT mapped.flow, mapped.topic, CAST(mapped.records AS BIGINT) AS mapped_records,
       least(coalesce(proven_records, 0), mapped.records) AS proven_records,
       round(least(coalesce(proven_records, 0), mapped.records) / mapped.records, 6) AS proven_share,
       coalesce(differing_ranges, 0) AS differing_ranges, proven_since, audited_at
FROM mapped LEFT JOIN compared ON compared.flow = mapped.flow AND compared.topic = mapped.topic
