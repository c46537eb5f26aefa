-- Ranges of the stage of which the map has fewer records than are staged, whatever their age, one row for each range of
-- offsets (inclusive) within it that was given up: how many records of these are staged is not counted here, and `missing`
-- has them all. Parked records count as mapped. What was produced again into a newer generation of a target topic counts
-- once, from where that one begins.
-- Frames: ranges (flow, topic, partition, generation, first, last, record_count, target_topic): of the map, and of what was
-- given up or parked, only what is of this target topic counts, from where it begins; in front of that what is of those that
-- the flow had before. One pass over the map, of which only runs that reach over an end of what is compared are taken apart.
WITH parts AS (
  SELECT flow, topic, partition, coalesce(generation, 0) AS generation, target_topic,
         coalesce(target_generation, 0) AS target_generation, min(source_first) AS began
  FROM offset_map
  GROUP BY ALL
),
bounded AS (
  SELECT parts.flow, parts.topic, parts.partition, parts.generation, parts.target_topic, parts.target_generation,
         ranges.first, ranges.last, ranges.record_count AS staged,
         least(min(began) OVER (
           PARTITION BY parts.flow, parts.topic, parts.partition, parts.generation, parts.target_topic
           ORDER BY parts.target_generation ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING),
           IF(parts.target_topic = ranges.target_topic, NULL, min(IF(parts.target_topic = ranges.target_topic, began, NULL)) OVER (
             PARTITION BY parts.flow, parts.topic, parts.partition, parts.generation))) AS taken_over,
         CASE WHEN parts.target_generation = min(parts.target_generation) OVER (
           PARTITION BY parts.flow, parts.topic, parts.partition, parts.generation, parts.target_topic)
           THEN 0L ELSE began END AS took_over
  FROM parts
  JOIN {ranges} AS ranges ON ranges.flow = parts.flow AND ranges.topic = parts.topic
    AND ranges.partition = parts.partition AND ranges.generation = parts.generation
),
runs AS (
  SELECT /*+ BROADCAST(bounded) */ bounded.flow, bounded.topic, bounded.partition, bounded.generation, source_first,
         source_last, offset_map.record_count, segments, first AS low, least(last, coalesce(taken_over - 1, last)) AS high
  FROM offset_map
  JOIN bounded ON bounded.flow = offset_map.flow AND bounded.topic = offset_map.topic
    AND bounded.partition = offset_map.partition AND bounded.generation = coalesce(offset_map.generation, 0)
    AND bounded.target_topic = offset_map.target_topic
    AND bounded.target_generation = coalesce(offset_map.target_generation, 0)
  WHERE source_last >= first AND source_first <= least(last, coalesce(taken_over - 1, last))
),
mapped AS (
  SELECT flow, topic, partition, generation,
         sum(CASE
               WHEN source_first >= low AND source_last <= high THEN record_count
               ELSE aggregate(segments, 0L, (n, one) -> n + greatest(
                 0L,
                 least(one.record_count - 1, IF(high < one.source_first, -1L, (high - one.source_first) DIV one.stride))
                   - greatest(0L, (low - one.source_first + one.stride - 1) DIV one.stride) + 1))
             END) AS record_count
  FROM runs
  GROUP BY flow, topic, partition, generation
),
-- What was deleted from the stage by predicate, and is in the map.
forgotten_since AS (
  SELECT flow, topic, partition, generation,
         sum(aggregate(segments, 0L, (n, one) -> n + greatest(
           0L,
           least(one.record_count - 1, IF(high < one.source_first, -1L, (high - one.source_first) DIV one.stride))
             - greatest(0L, (low - one.source_first + one.stride - 1) DIV one.stride) + 1))) AS record_count
  FROM (
    SELECT runs.flow, runs.topic, runs.partition, runs.generation, segments, greatest(low, first_offset) AS low,
           least(high, last_offset) AS high
    FROM runs
    JOIN forgotten ON forgotten.source_cluster = split(runs.flow, '->')[0] AND forgotten.topic = runs.topic
      AND forgotten.partition = runs.partition AND forgotten.generation = runs.generation
      AND first_offset <= least(source_last, high) AND last_offset >= greatest(source_first, low)
  )
  GROUP BY flow, topic, partition, generation
),
-- Where an earlier version did not note for which generation of the target topic, it counts for all of them, once.
decided AS (
  SELECT flow, topic, partition, coalesce(generation, 0) AS generation, target_topic, target_generation, first_offset,
         last_offset
  FROM incidents
  WHERE kind = 'target_refused' AND resolution = 'skip' OR kind = 'target_lost' AND resolution = 'accept'
),
given_up AS (
  SELECT bounded.flow, bounded.topic, bounded.partition, bounded.generation,
         greatest(first, took_over, first_offset) AS given_first,
         least(last, coalesce(taken_over - 1, last), last_offset) AS given_last
  FROM decided
  JOIN bounded ON bounded.flow = decided.flow AND bounded.topic = decided.topic
    AND bounded.partition = decided.partition AND bounded.generation = decided.generation
    AND bounded.target_generation = decided.target_generation
    AND bounded.target_topic = coalesce(decided.target_topic, bounded.target_topic)
  UNION ALL
  SELECT ranges.flow, ranges.topic, ranges.partition, ranges.generation, greatest(first, first_offset),
         least(last, last_offset)
  FROM decided
  JOIN {ranges} AS ranges ON ranges.flow = decided.flow AND ranges.topic = decided.topic
    AND ranges.partition = decided.partition AND ranges.generation = decided.generation
  WHERE target_generation IS NULL
),
refused AS (
  SELECT bounded.flow, bounded.topic, bounded.partition, bounded.generation, count(*) AS record_count
  FROM parked
  JOIN bounded ON bounded.flow = parked.flow AND bounded.topic = parked.topic AND bounded.partition = parked.partition
    AND bounded.generation = parked.generation AND bounded.target_topic = parked.target_topic
    AND bounded.target_generation = parked.target_generation
  WHERE parked.offset BETWEEN greatest(first, took_over) AND least(last, coalesce(taken_over - 1, last))
  GROUP BY bounded.flow, bounded.topic, bounded.partition, bounded.generation
)
SELECT lacking.flow, lacking.topic, lacking.partition, lacking.generation, first AS first_offset, last AS last_offset,
       staged - taken AS missing, given_first, given_last
FROM (
  SELECT ranges.flow, ranges.topic, ranges.partition, ranges.generation, first, last, ranges.record_count AS staged,
         coalesce(mapped.record_count, 0) - coalesce(forgotten_since.record_count, 0)
           + coalesce(refused.record_count, 0) AS taken
  FROM {ranges} AS ranges
  LEFT JOIN mapped USING (flow, topic, partition, generation)
  LEFT JOIN forgotten_since USING (flow, topic, partition, generation)
  LEFT JOIN refused USING (flow, topic, partition, generation)
) AS lacking
LEFT JOIN (SELECT * FROM given_up WHERE given_first <= given_last) AS given_up ON given_up.flow = lacking.flow
  AND given_up.topic = lacking.topic AND given_up.partition = lacking.partition
  AND given_up.generation = lacking.generation
WHERE staged > taken
ORDER BY lacking.flow, lacking.topic, lacking.partition, lacking.generation
