-- One row is one condition that an operator has to look at now; no row means that all is healthy. Thresholds are those
-- of the topology file, by `objectives`; docs/operate.md says what each means and which flows it is about.
--
-- Samples and latencies count only while they are new, so a flow that no process runs says nothing by its last ones. A
-- sample holds until the next one: of a partition that lags there is one a minute at least, of any other one an hour.
-- 'heartbeat' and 'not_running' are about flows that are to run all the time: those whose last run was a continuous one
-- that did not end in order. Incidents stay until an operator decides. Samples, batches and starts of a time to come are of
-- a clock that was wrong, as in `replication_lag`: when such a flow began is not known.
--
-- What it costs: the samples of 13 hours, the latencies of a day, the map of a day. So a flow that has not run for longer
-- is 'not_running' since 13 hours ago, or since it was started. `records` is read only for partitions in whose map of
-- that day neighbouring runs leave offsets out (as transaction markers do), and of those only topic, partition and
-- offset, of files landed in that day: some bytes a record. The hints keep Spark from sorting records for that. A gap
-- older than a day is found by `mirrorlake status`, and by `divergence`, which reads the coordinates of all records.
-- Heartbeats may wait for others before they are landed, so only 'heartbeat' and 'stuck' look at them.
CREATE OR REPLACE VIEW alerts AS
WITH watched AS (
  SELECT flow, lag_seconds AS lag_objective, latency_p99_ms, heartbeat_seconds, stuck_seconds, paused, heartbeats, gaps,
         mode, heartbeat_topics,
         IF(since > current_timestamp() + INTERVAL 5 MINUTES, current_timestamp() - INTERVAL 13 HOURS, since) AS began,
         coalesce(transaction_seconds, 900L) AS transaction_seconds
  FROM objectives
  WHERE enabled AND mode IN ('continuous', 'once')
),
-- When each flow was sampled last, and how old that may be: ten minutes, or three intervals.
signs AS (
  SELECT flow, max(sampled_at) AS sign_at,
         max_by(greatest(600, 3 * coalesce(interval_seconds, 10)), sampled_at) AS quiet_seconds
  FROM positions
  WHERE sampled_at >= current_timestamp() - INTERVAL 13 HOURS AND sampled_at < current_timestamp() + INTERVAL 5 MINUTES
  GROUP BY flow
),
samples AS (
  SELECT positions.flow, topic, partition, sampled_at, produced_end, lag_records, lag_seconds, lag_objective,
         stuck_seconds, stalled_since, sign_at, quiet_seconds, coalesce(topic RLIKE heartbeat_topics, topic = 'heartbeats') AS aside,
         transaction_seconds, source_end, source_high_watermark, transaction_since, transaction_producer_id,
         first_value(produced_end) OVER (
           PARTITION BY positions.flow, topic, partition ORDER BY sampled_at DESC) AS stands_at
  FROM positions JOIN watched ON watched.flow = positions.flow JOIN signs ON signs.flow = positions.flow
  WHERE sampled_at >= current_timestamp() - INTERVAL 13 HOURS AND sampled_at <= sign_at
    AND NOT coalesce(topic RLIKE paused, false)
),
-- When a partition was last seen to move, or to have nothing to do, which samples of earlier versions do not say; and when
-- its lag was last within the objective.
seen AS (
  SELECT *,
         max(CASE WHEN lag_records = 0 OR produced_end <> stands_at THEN sampled_at END) OVER one AS moved_at,
         max(CASE WHEN coalesce(lag_seconds, 0) <= lag_objective THEN sampled_at END) OVER one AS timely_at
  FROM samples
  WINDOW one AS (PARTITION BY flow, topic, partition)
),
standing AS (
  SELECT flow, topic, partition, lag_objective, stuck_seconds, stands_at, aside,
         max(sign_at) AS sampled_at,
         max_by(lag_records, sampled_at) AS lag_records,
         max_by(lag_seconds, sampled_at) AS lag_seconds,
         coalesce(max_by(stalled_since, sampled_at),
                  min(CASE WHEN moved_at IS NULL OR sampled_at > moved_at THEN sampled_at END)) AS stuck_since,
         min(CASE WHEN timely_at IS NULL OR sampled_at > timely_at THEN sampled_at END) AS late_since
  FROM seen
  GROUP BY flow, topic, partition, lag_objective, stuck_seconds, stands_at, aside
  HAVING unix_seconds(current_timestamp()) - unix_seconds(max(sign_at)) <= max(quiet_seconds)
),
-- Transactions that are open at the source, by the newest sample of each partition.
held AS (
  SELECT flow, topic, partition, transaction_seconds, max(sign_at) AS sampled_at,
         max_by(struct(transaction_since, transaction_producer_id, source_end, source_high_watermark), sampled_at) AS sample
  FROM samples
  GROUP BY flow, topic, partition, transaction_seconds
  HAVING unix_seconds(current_timestamp()) - unix_seconds(max(sign_at)) <= max(quiet_seconds)
),
-- Records that were there when no process ran the flow were late before it could help it: only those made since count. Each
-- record of a batch is as late as the batch's p99: up_to says how many are at most so late, place which one is looked for.
timely AS (
  SELECT latency.flow, topic, latency_p99_ms, replication_p99_ms, produced_at,
         sum(record_count) OVER (PARTITION BY latency.flow, topic ORDER BY replication_p99_ms) AS up_to,
         (sum(record_count) OVER (PARTITION BY latency.flow, topic) - 1) * 0.99D AS place
  FROM latency JOIN watched ON watched.flow = latency.flow
  WHERE NOT coalesce(topic RLIKE heartbeat_topics, topic = 'heartbeats') AND mode = 'continuous' AND record_count > 0
    AND produced_at >= current_timestamp() - INTERVAL 5 MINUTES AND produced_at < current_timestamp() + INTERVAL 5 MINUTES
    AND unix_millis(produced_at) - replication_p99_ms >= unix_millis(began)
),
around AS (
  SELECT flow, topic, latency_p99_ms, max(place - floor(place)) AS share,
         min(CASE WHEN up_to > floor(place) THEN replication_p99_ms END) AS below,
         min(CASE WHEN up_to > ceil(place) THEN replication_p99_ms END) AS above,
         min(CASE WHEN replication_p99_ms > latency_p99_ms THEN produced_at END) AS since
  FROM timely
  GROUP BY flow, topic, latency_p99_ms
),
late AS (SELECT flow, topic, latency_p99_ms, below + share * (above - below) AS p99_ms, since FROM around),
-- No heartbeat was sent after it arrived, whatever its clock said.
beats AS (
  SELECT flow, max(unix_millis(produced_at) - CASE WHEN replication_min_ms > 0 THEN replication_min_ms
                                                    WHEN replication_min_ms <= 0 THEN 0 END) AS sent_ms
  FROM latency
  WHERE topic = 'heartbeats' AND produced_at >= current_timestamp() - INTERVAL 1 DAY
    AND produced_at < current_timestamp() + INTERVAL 5 MINUTES
  GROUP BY flow
),
-- A flow without a sample in the 13 hours that are read had its last one before them.
alive AS (
  SELECT watched.flow, heartbeats, heartbeat_seconds, greatest(stuck_seconds, coalesce(quiet_seconds, 0)) AS stuck_seconds,
         timestamp_millis(greatest(coalesce(sent_ms, 0L), unix_millis(began))) AS beat_at,
         greatest(coalesce(sign_at, current_timestamp() - INTERVAL 13 HOURS), began) AS sign_at
  FROM watched LEFT JOIN beats ON beats.flow = watched.flow LEFT JOIN signs ON signs.flow = watched.flow
  WHERE mode = 'continuous'
),
runs AS (
  SELECT offset_map.flow, topic, partition, coalesce(generation, 0) AS generation,
         target_topic, coalesce(target_generation, 0) AS target_generation, source_first, source_last, record_count,
         segments, produced_at,
         max(source_last) OVER (
           PARTITION BY offset_map.flow, topic, partition, coalesce(generation, 0), target_topic, coalesce(target_generation, 0)
           ORDER BY source_first ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
  FROM offset_map JOIN watched ON watched.flow = offset_map.flow
  WHERE gaps AND produced_at >= current_timestamp() - INTERVAL 1 DAY
),
ranges AS (
  SELECT flow, topic, partition, generation, target_topic, target_generation, min(source_first) AS first_offset,
         max(source_last) AS last_offset, sum(record_count) AS mapped,
         min(CASE WHEN source_first > before + 1 THEN produced_at END) AS since
  FROM runs
  GROUP BY flow, topic, partition, generation, target_topic, target_generation
  HAVING since IS NOT NULL
),
-- Of these runs, what was deleted from the stage by predicate since.
forgotten_since AS (
  SELECT flow, topic, partition, generation, target_topic, target_generation,
         sum(aggregate(segments, 0L, (n, one) -> n + greatest(
           0L,
           least(one.record_count - 1, IF(high < one.source_first, -1L, (high - one.source_first) DIV one.stride))
             - greatest(0L, (low - one.source_first + one.stride - 1) DIV one.stride) + 1))) AS record_count
  FROM (
    SELECT runs.flow, runs.topic, runs.partition, runs.generation, target_topic, target_generation, segments,
           greatest(source_first, first_offset) AS low, least(source_last, last_offset) AS high
    FROM runs
    JOIN forgotten ON forgotten.source_cluster = split(runs.flow, '->')[0] AND forgotten.topic = runs.topic
      AND forgotten.partition = runs.partition AND forgotten.generation = runs.generation
      AND first_offset <= source_last AND last_offset >= source_first
    WHERE deleted_at IS NOT NULL
  )
  GROUP BY flow, topic, partition, generation, target_topic, target_generation
),
left_out AS (
  SELECT flow, topic, partition, first_offset, last_offset, coalesce(generation, 0) AS generation, target_topic,
         target_generation
  FROM incidents
  WHERE kind = 'target_refused' AND resolution = 'skip' OR kind = 'target_lost' AND resolution = 'accept'
  UNION ALL
  SELECT flow, topic, partition, offset, offset, generation, target_topic, target_generation FROM parked
),
staged AS (
  SELECT /*+ BROADCAST(ranges), BROADCAST(left_out) */ ranges.flow, ranges.topic, ranges.partition,
         ranges.generation, ranges.target_topic, ranges.target_generation, ranges.first_offset, ranges.last_offset,
         mapped, since,
         count(*) AS staged
  FROM ranges
  JOIN records ON records.source_cluster = split(ranges.flow, '->')[0] AND records.topic = ranges.topic
    AND records.partition = ranges.partition AND coalesce(records.generation, 0) = ranges.generation
    AND records.offset BETWEEN ranges.first_offset AND ranges.last_offset
  LEFT ANTI JOIN left_out ON left_out.flow = ranges.flow AND left_out.topic = ranges.topic
    AND left_out.partition = ranges.partition
    AND records.offset BETWEEN left_out.first_offset AND left_out.last_offset
    AND left_out.generation = ranges.generation
    AND coalesce(left_out.target_topic, ranges.target_topic) = ranges.target_topic
    AND coalesce(left_out.target_generation, ranges.target_generation) = ranges.target_generation
  WHERE records.batch_id >= unix_millis(current_timestamp() - INTERVAL 1 DAY)
  GROUP BY ranges.flow, ranges.topic, ranges.partition, ranges.generation, ranges.target_topic, ranges.target_generation,
           ranges.first_offset, ranges.last_offset, mapped, since
),
unmapped AS (
  SELECT flow, topic, partition, first_offset, last_offset, since,
         staged - mapped + coalesce(forgotten_since.record_count, 0) AS missing
  FROM staged LEFT JOIN forgotten_since USING (flow, topic, partition, generation, target_topic, target_generation)
)
SELECT flow, 'stuck' AS alert, topic, partition,
       CAST(unix_seconds(sampled_at) - unix_seconds(stuck_since) AS DOUBLE) AS value,
       CAST(stuck_seconds AS DOUBLE) AS threshold, stuck_since AS since,
       concat(lag_records, ' records wait behind offset ', stands_at, ', which does not move') AS detail
FROM standing
WHERE lag_records > 0 AND unix_seconds(sampled_at) - unix_seconds(stuck_since) >= stuck_seconds
UNION ALL
SELECT flow, 'lag', topic, partition, lag_seconds, CAST(lag_objective AS DOUBLE), late_since,
       concat(lag_records, ' records wait; the oldest has for ', CAST(lag_seconds AS BIGINT), ' s')
FROM standing
WHERE lag_seconds > lag_objective AND NOT aside
UNION ALL
SELECT flow, 'hanging_transaction', topic, partition,
       CAST(unix_seconds(sampled_at) - unix_seconds(sample.transaction_since) AS DOUBLE),
       CAST(transaction_seconds AS DOUBLE), sample.transaction_since,
       concat('a transaction of producer id ', coalesce(CAST(sample.transaction_producer_id AS STRING), 'unknown'),
              ' is open at offset ', sample.source_end, ' of the source since ',
              unix_seconds(sampled_at) - unix_seconds(sample.transaction_since), ' s: ',
              sample.source_high_watermark - sample.source_end, ' offsets wait behind it')
FROM held
WHERE sample.transaction_since IS NOT NULL
  AND unix_seconds(sampled_at) - unix_seconds(sample.transaction_since) >= transaction_seconds
UNION ALL
SELECT flow, 'latency', topic, CAST(NULL AS INT), p99_ms, CAST(latency_p99_ms AS DOUBLE), since,
       concat('records took up to ', CAST(p99_ms AS BIGINT), ' ms in the last minutes')
FROM late
WHERE p99_ms > latency_p99_ms
UNION ALL
SELECT flow, 'heartbeat', 'heartbeats', CAST(NULL AS INT),
       (unix_millis(current_timestamp()) - unix_millis(beat_at)) / 1000, CAST(heartbeat_seconds AS DOUBLE), beat_at,
       'no heartbeat came through: is the flow running, and do both clusters answer?'
FROM alive
WHERE heartbeats AND unix_millis(current_timestamp()) - unix_millis(beat_at) > heartbeat_seconds * 1000
UNION ALL
SELECT flow, 'not_running', CAST(NULL AS STRING), CAST(NULL AS INT),
       CAST(unix_seconds(current_timestamp()) - unix_seconds(sign_at) AS DOUBLE), CAST(stuck_seconds AS DOUBLE), sign_at,
       'no sample was taken: the process that ran the flow did not end in order, and is not there any more'
FROM alive
WHERE unix_seconds(current_timestamp()) - unix_seconds(sign_at) >= stuck_seconds
UNION ALL
SELECT flow, 'incident', topic, partition, CAST(NULL AS DOUBLE), CAST(NULL AS DOUBLE), at, concat(kind, ': ', detail)
FROM open_incidents
UNION ALL
SELECT flow, 'map_gap', topic, partition, CAST(missing AS DOUBLE), 0.0D, since,
       concat(missing, ' staged records between offsets ', first_offset, ' and ', last_offset,
              ' have no target offset; the view divergence says which')
FROM unmapped
WHERE missing > 0
