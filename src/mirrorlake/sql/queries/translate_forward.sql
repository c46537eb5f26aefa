-- The law of translation, forward: a source position goes to the target offset of the first mapped record at or behind
-- it. Without such a record the position is behind all that is mapped: it goes behind the last one, exactly if nothing
-- staged or to be staged lies in between (covered), in the target topic into which the flow goes on, which may have had
-- another one before, under another policy. A position is one in the newest generation of its topic, since the
-- offsets of previous ones are no more; but below the offset from which a partition began a generation by itself
-- (branches), they are the same records as before. A sample counts only once the map has come as far as it says
-- (mapped_end; where an earlier version took it, as far as all that was produced): rows of the map follow production by
-- some moments; and only for the generations, of the source topic and of the target topic, that it is of (of one that an
-- earlier version took, the time says of which source topic). While a target topic is gone, or was
-- made again and no operator has decided what becomes of it, every position leads to its start, which skips nothing, and
-- none exactly. Frames: asked (topic, partition, offset), runs (of offset_translation, all that the positions can
-- need), samples (of positions). Parameters: flow. One row per position asked.
-- All goes through one pass: each table is read once and shuffled once, by topic.
WITH branches AS (
  SELECT topic, partition, max(started_at) AS began, max(generation) AS newest,
         collect_list(struct(generation, first_offset)) AS later
  FROM generations
  WHERE source_cluster = split(:flow, '->')[0] AND partition IS NOT NULL
  GROUP BY topic, partition
),
valid AS (
  SELECT runs.*,
         array_min(transform(filter(later, one -> one.generation > runs.generation), one -> one.first_offset)) AS cut
  FROM {runs} AS runs LEFT JOIN branches ON branches.topic = runs.topic AND branches.partition = runs.partition
),
steps AS (
  SELECT topic, partition, least(source_last, cut - 1) AS at, 0 AS asks, generation,
         CAST(NULL AS TIMESTAMP) AS started_at, coalesce(source_first < cut, true) AS is_valid,
         struct(source_first, stride, target_first, target_last, target_topic) AS run, NULL AS sample, NULL AS target
  FROM valid
  UNION ALL
  SELECT topic, partition, offset, 1, NULL, NULL, NULL, NULL, NULL, NULL
  FROM {asked}
  UNION ALL
  SELECT samples.topic, samples.partition, NULL, 0, NULL, NULL, NULL, NULL,
         struct(sampled_at, produced_end, mapped_end, target_topic, coalesce(target_generation, 0) AS target_generation,
                samples.generation AS generation),
         NULL
  FROM {samples} AS samples
    LEFT JOIN branches ON branches.topic = samples.topic AND branches.partition = samples.partition
  WHERE began IS NULL OR coalesce(samples.generation >= newest, sampled_at >= began)
  UNION ALL
  SELECT topic, NULL, NULL, 0, generation, started_at, NULL, NULL, NULL, NULL
  FROM generations
  WHERE source_cluster = split(:flow, '->')[0] AND generation > 0 AND partition IS NULL
  UNION ALL
  SELECT topic, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL,
         struct(started_at, target_topic, target_generation, partitions, lives)
  FROM living_targets
  WHERE flow = :flow
),
noted AS (
  SELECT *,
         max_by(run.target_topic, run.target_last) OVER whole_topic AS topic_mirror,
         run IS NOT NULL AND is_valid
           AND generation >= coalesce(max(IF(run IS NULL, generation, NULL)) OVER whole_topic, 0) AS is_living,
         coalesce(max(started_at) OVER whole_topic, TIMESTAMP '1970-01-01') AS life_began,
         coalesce(max(IF(run IS NULL, generation, NULL)) OVER whole_topic, 0) AS life,
         max_by(target, target.started_at) OVER whole_topic AS newest_target
  FROM steps
  WINDOW whole_topic AS (PARTITION BY topic)
),
ended AS (
  SELECT *,
         max(IF(is_living, at, NULL)) OVER whole_partition AS source_last,
         max(IF(run IS NULL, NULL, struct(generation, at, run.target_topic AS target_topic))) OVER whole_partition
           AS newest_run,
         coalesce(sample.generation >= life, sample.sampled_at >= life_began)
           AND (newest_target IS NULL OR newest_target.target_topic <> sample.target_topic
                OR newest_target.lives AND newest_target.target_generation = sample.target_generation) AS is_of_generation
  FROM noted
  WINDOW whole_partition AS (PARTITION BY topic, partition)
),
-- A sample that is older than the newest run does not say into which target topic the flow goes on.
weighed AS (
  SELECT *, is_of_generation AND coalesce(sample.mapped_end, sample.produced_end) <= coalesce(source_last + 1, 0L) AS counts,
         coalesce(max_by(sample.target_topic, IF(
           is_of_generation AND greatest(sample.mapped_end, sample.produced_end) >= coalesce(source_last + 1, 0L),
           sample.sampled_at, NULL)) OVER (PARTITION BY topic, partition), newest_run.target_topic) AS mirror
  FROM ended
),
told AS (
  SELECT
    topic, partition, at AS offset, asks, topic_mirror, newest_target, source_last, mirror,
    -- Down the offsets of a partition: the last run met is the first one at or behind the position.
    last(IF(is_living, run, NULL)) IGNORE NULLS OVER (
      PARTITION BY topic, partition ORDER BY at DESC, asks ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS next,
    max(IF(is_living AND run.target_topic = mirror, run.target_last, NULL)) OVER whole_partition AS target_last,
    max(IF(run.target_topic = mirror, run.target_last, NULL)) OVER whole_partition AS older_last,
    max(IF(counts, sample.produced_end, NULL)) OVER whole_partition AS produced_end,
    max_by(sample.target_topic, IF(is_of_generation, sample.sampled_at, NULL)) OVER whole_partition AS sampled_mirror,
    count(sample) OVER whole_partition AS samples
  FROM weighed
  WINDOW whole_partition AS (PARTITION BY topic, partition)
)
SELECT
  topic AS asked_topic,
  partition,
  offset AS asked_offset,
  coalesce(next.target_topic, mirror, sampled_mirror, topic_mirror, newest_target.target_topic) AS topic,
  CASE
    WHEN next IS NOT NULL
      THEN next.target_first + greatest(0L, (told.offset - next.source_first + next.stride - 1) DIV next.stride)
    ELSE coalesce(target_last, older_last, -1L) + 1
  END AS offset,
  coalesce(newest_target.lives, true) AND (
    next IS NOT NULL
    OR told.offset <= coalesce(source_last + 1, 0L)
    OR told.offset <= coalesce(produced_end, 0L)) AS exact,
  next IS NOT NULL OR mirror IS NOT NULL OR sampled_mirror IS NOT NULL
    OR NOT newest_target.lives AND samples > 0 OR coalesce(partition < newest_target.partitions, false) AS known,
  next IS NOT NULL AS ahead,
  topic_mirror IS NOT NULL AS mapped,
  coalesce(source_last + 1, 0L) AS mapped_end
FROM told
WHERE asks = 1
