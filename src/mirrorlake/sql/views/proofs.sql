-- What is known by content of each stretch of source offsets (inclusive): the newest verdict on it. Only the living
-- generation of a target topic counts: what was compared with a topic that is gone, or that is not named, proves nothing.
-- Nor does what began to be compared before an operator decided about records that the target has lost, of these and of all
-- behind them. No range of `audits` spans a multiple of 100,000, which keeps the join small. record_count is of the stage,
-- mapped_count without the records that were left out on purpose, which no map has; for a range of which only a part was
-- compared again they are in proportion to the offsets. gone_count is at most how many mapped ones had nothing left to be
-- compared with: retention or compaction took them at the target, or they were neither at the source nor in the stage.
CREATE OR REPLACE VIEW proofs AS
WITH lost AS (
  SELECT flow, topic, partition, coalesce(generation, 0) AS of_generation,
         coalesce(target_generation, 0) AS of_target_generation, target_topic, first_offset, resolved_at
  FROM incidents
  WHERE kind = 'target_lost' AND first_offset IS NOT NULL
),
losses_of AS (
  SELECT flow, topic, partition, of_generation, of_target_generation,
         collect_list(struct(target_topic, first_offset, resolved_at)) AS losses
  FROM lost
  GROUP BY flow, topic, partition, of_generation, of_target_generation
),
ranges AS (
  SELECT audits.*, stage_count - coalesce(excused['parked'], 0L) - coalesce(excused['given_up'], 0L)
           - coalesce(excused['echo'], 0L) AS sent_count,
         coalesce(excused['superseded'], 0L) + coalesce(excused['target_trimmed'], 0L)
           + coalesce(only_mapped, least(coalesce(excused['source_trimmed'], 0L),
               coalesce(excused['forgotten'], 0L) + coalesce(excused['stage_trimmed'], 0L))) AS gone_count,
         coalesce(generation, 0) AS of_generation, coalesce(audits.target_generation, 0) AS of_target_generation,
         audits.target_topic AS mirror, first_offset DIV 100000 AS bucket
  FROM audits LEFT JOIN living_targets AS target
    ON target.flow = audits.flow AND target.topic = audits.topic AND target.target_topic = audits.target_topic
  WHERE first_offset IS NOT NULL AND audits.target_topic IS NOT NULL
    AND (target.flow IS NULL OR target.lives AND target.target_generation = coalesce(audits.target_generation, 0))
),
cuts AS (
  SELECT flow, topic, partition, of_generation, mirror, of_target_generation, bucket, first_offset AS at FROM ranges
  UNION
  SELECT flow, topic, partition, of_generation, mirror, of_target_generation, bucket, last_offset + 1 AS at FROM ranges
  UNION
  SELECT ranges.flow, ranges.topic, ranges.partition, ranges.of_generation, mirror, ranges.of_target_generation, bucket,
         lost.first_offset AS at
  FROM ranges JOIN lost
    ON lost.flow = ranges.flow AND lost.topic = ranges.topic AND lost.partition = ranges.partition
    AND lost.of_generation = ranges.of_generation AND lost.of_target_generation = ranges.of_target_generation
    AND coalesce(lost.target_topic, mirror) = mirror
    AND lost.first_offset BETWEEN ranges.first_offset AND ranges.last_offset
),
pieces AS (
  SELECT *, lead(at) OVER (
    PARTITION BY flow, topic, partition, of_generation, mirror, of_target_generation, bucket ORDER BY at) - 1 AS until
  FROM cuts
),
compared AS (
  SELECT pieces.*, ranges.verdict, ranges.audited_at, ranges.target_last_offset,
         ranges.verdict IN ('proven', 'source_trimmed', 'superseded') AS is_whole,
         coalesce(exists(losses_of.losses, loss -> loss.first_offset <= pieces.until
                                   AND coalesce(loss.target_topic, ranges.mirror) = ranges.mirror
                                   AND coalesce(loss.resolved_at >= ranges.audited_at, true)), false) AS is_lost,
         ranges.stage_count * (pieces.until - pieces.at + 1) / (ranges.last_offset - ranges.first_offset + 1) AS staged,
         ranges.sent_count * (pieces.until - pieces.at + 1) / (ranges.last_offset - ranges.first_offset + 1) AS sent,
         ranges.gone_count * (pieces.until - pieces.at + 1) / (ranges.last_offset - ranges.first_offset + 1) AS gone
  FROM pieces JOIN ranges
    ON ranges.flow = pieces.flow AND ranges.topic = pieces.topic AND ranges.partition = pieces.partition
    AND ranges.of_generation = pieces.of_generation AND ranges.of_target_generation = pieces.of_target_generation
    AND ranges.mirror = pieces.mirror
    AND ranges.bucket = pieces.bucket AND ranges.first_offset <= pieces.at AND pieces.until <= ranges.last_offset
  LEFT JOIN losses_of ON losses_of.flow = pieces.flow AND losses_of.topic = pieces.topic
    AND losses_of.partition = pieces.partition AND losses_of.of_generation = pieces.of_generation
    AND losses_of.of_target_generation = pieces.of_target_generation
  WHERE pieces.until IS NOT NULL
)
SELECT
  flow,
  topic,
  partition,
  of_generation AS generation,
  of_target_generation AS target_generation,
  compared.at AS first_offset,
  compared.until AS last_offset,
  max_by(IF(is_whole AND is_lost, 'missing_at_target', compared.verdict), compared.audited_at) AS verdict,
  max_by(is_whole AND NOT is_lost, compared.audited_at) AS proven,
  max(compared.audited_at) AS audited_at,
  CAST(round(max_by(staged, compared.audited_at)) AS BIGINT) AS record_count,
  max_by(compared.target_last_offset, compared.audited_at) AS target_last_offset,
  mirror AS target_topic,
  CAST(round(max_by(sent, compared.audited_at)) AS BIGINT) AS mapped_count,
  CAST(ceil(max_by(gone, compared.audited_at)) AS BIGINT) AS gone_count
FROM compared
GROUP BY flow, topic, partition, of_generation, mirror, of_target_generation, compared.at, compared.until
