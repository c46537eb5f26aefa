-- What is known by content of each stretch of source offsets (inclusive): the newest verdict on it. Only the living
-- generation of a target topic counts: what was compared with a topic that is gone proves nothing. No range of `audits` spans
-- a multiple of 100,000, which keeps the join small. record_count is of the stage, mapped_count without the records that were left
-- out on purpose, which no map has; for a range of which only a part was compared again they are in proportion to the offsets.
CREATE OR REPLACE VIEW proofs AS
WITH ranges AS (
  SELECT audits.*, stage_count - coalesce(excused['parked'], 0L) - coalesce(excused['given_up'], 0L)
           - coalesce(excused['echo'], 0L) AS sent_count, coalesce(generation, 0) AS of_generation, coalesce(audits.target_generation, 0) AS of_target_generation,
         coalesce(audits.target_topic, '') AS mirror, first_offset DIV 100000 AS bucket
  FROM audits LEFT JOIN living_targets AS target
    ON target.flow = audits.flow AND target.topic = audits.topic AND target.target_topic = audits.target_topic
  WHERE first_offset IS NOT NULL
    AND (target.flow IS NULL OR target.lives AND target.target_generation = coalesce(audits.target_generation, 0))
),
cuts AS (
  SELECT flow, topic, partition, of_generation, mirror, of_target_generation, bucket, first_offset AS at FROM ranges
  UNION
  SELECT flow, topic, partition, of_generation, mirror, of_target_generation, bucket, last_offset + 1 AS at FROM ranges
),
pieces AS (
  SELECT *, lead(at) OVER (
    PARTITION BY flow, topic, partition, of_generation, mirror, of_target_generation, bucket ORDER BY at) - 1 AS until
  FROM cuts
)
SELECT
  pieces.flow,
  pieces.topic,
  pieces.partition,
  pieces.of_generation AS generation,
  pieces.of_target_generation AS target_generation,
  pieces.at AS first_offset,
  pieces.until AS last_offset,
  max_by(ranges.verdict, ranges.audited_at) AS verdict,
  max_by(ranges.verdict IN ('proven', 'source_trimmed', 'superseded'), ranges.audited_at) AS proven,
  max(ranges.audited_at) AS audited_at,
  CAST(round(max_by(ranges.stage_count * (pieces.until - pieces.at + 1) / (ranges.last_offset - ranges.first_offset + 1),
                    ranges.audited_at)) AS BIGINT) AS record_count,
  max_by(ranges.target_last_offset, ranges.audited_at) AS target_last_offset,
  nullif(pieces.mirror, '') AS target_topic,
  CAST(round(max_by(ranges.sent_count * (pieces.until - pieces.at + 1) / (ranges.last_offset - ranges.first_offset + 1),
                    ranges.audited_at)) AS BIGINT) AS mapped_count
FROM pieces JOIN ranges
  ON ranges.flow = pieces.flow AND ranges.topic = pieces.topic AND ranges.partition = pieces.partition
  AND ranges.of_generation = pieces.of_generation AND ranges.of_target_generation = pieces.of_target_generation
  AND ranges.mirror = pieces.mirror
  AND ranges.bucket = pieces.bucket AND ranges.first_offset <= pieces.at AND pieces.until <= ranges.last_offset
WHERE pieces.until IS NOT NULL
GROUP BY pieces.flow, pieces.topic, pieces.partition, pieces.of_generation, pieces.mirror, pieces.of_target_generation,
         pieces.at, pieces.until
