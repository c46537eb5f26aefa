-- Of some partitions the records, up to an offset, that compaction has to leave: those of which no later record in front of
-- an end has the same key, except deletions (null values) older than a time. Records without a key are never compacted away.
-- What a flow left out supersedes nothing. Frames: compacted (topic, partition, generation, first, last, below), left_out
-- (topic, partition, generation, first, last); offsets are of the source, inclusive but for below. Parameters:
-- source_cluster, deletions_ms.
WITH asked AS (
  SELECT * FROM {compacted}
),
left_out AS (
  SELECT * FROM {left_out}
),
mine AS (
  SELECT records.topic, records.partition, asked.generation, records.offset, records.key, asked.last,
         records.value IS NULL AND coalesce(records.timestamp_ms, unix_millis(records.timestamp)) < :deletions_ms AS goes
  FROM records JOIN asked ON asked.topic = records.topic AND asked.partition = records.partition
    AND asked.generation = coalesce(records.generation, 0)
  WHERE records.source_cluster = :source_cluster AND records.offset >= asked.first AND records.offset < asked.below
),
sent AS (
  SELECT mine.*
  FROM mine LEFT ANTI JOIN left_out ON left_out.topic = mine.topic AND left_out.partition = mine.partition
    AND left_out.generation = mine.generation AND mine.offset BETWEEN left_out.first AND left_out.last
),
newest AS (
  SELECT topic, partition, generation, max(offset) AS offset, max_by(goes, offset) AS goes, max(last) AS last
  FROM sent
  WHERE key IS NOT NULL
  GROUP BY topic, partition, generation, key
)
SELECT topic, partition, generation, offset FROM newest WHERE offset <= last AND NOT goes
UNION ALL
SELECT topic, partition, generation, offset FROM sent WHERE key IS NULL AND offset <= last
