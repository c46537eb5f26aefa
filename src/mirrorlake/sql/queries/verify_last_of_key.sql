-- Of some partitions the records, up to an offset, that compaction has to leave: those of which no later record in front of
-- an end has the same key, except deletions (null values) older than a time. Records without a key are never compacted away.
-- What a flow left out supersedes nothing. Nor does an echo, a record that came from the `target` (an alias; empty for a flow
-- without provenance), where the maps say that there it is in front of what it would supersede. Frames: compacted (topic,
-- partition, generation, first, last, below), left_out (topic, partition, generation, first, last); offsets are of the
-- source, inclusive but for below. Parameters: source_cluster, deletions_ms, flow, back (the flow that way), target.
WITH target AS (
  SELECT max_by(cluster_id, last_seen) AS cluster_id FROM clusters WHERE alias = :target
),
asked AS (
  SELECT * FROM {compacted}
),
left_out AS (
  SELECT * FROM {left_out}
),
mine AS (
  SELECT records.topic, records.partition, asked.generation, records.offset, records.key, asked.last,
         records.value IS NULL AND coalesce(records.timestamp_ms, unix_millis(records.timestamp)) < :deletions_ms AS goes,
         coalesce(exists(headers, header -> header.key = 'mirrorlake-provenance'
                         AND CAST(header.value AS STRING) = target.cluster_id), false) AS is_echo
  FROM records CROSS JOIN target JOIN asked ON asked.topic = records.topic AND asked.partition = records.partition
    AND asked.generation = coalesce(records.generation, 0)
  WHERE records.source_cluster = :source_cluster AND records.offset >= asked.first AND records.offset < asked.below
),
sent AS (
  SELECT mine.*
  FROM mine LEFT ANTI JOIN left_out ON left_out.topic = mine.topic AND left_out.partition = mine.partition
    AND left_out.generation = mine.generation AND mine.offset BETWEEN left_out.first AND left_out.last
  WHERE NOT mine.is_echo
),
newest AS (
  SELECT topic, partition, generation, key, max(offset) AS offset, max_by(goes, offset) AS goes, max(last) AS last
  FROM sent
  WHERE key IS NOT NULL
  GROUP BY topic, partition, generation, key
),
echoes AS (
  SELECT topic, partition, generation, key, max(offset) AS offset
  FROM mine
  WHERE key IS NOT NULL AND is_echo
  GROUP BY topic, partition, generation, key
),
last_ones AS (
  SELECT newest.topic, newest.partition, newest.generation, newest.offset, echoes.offset AS echo
  FROM newest LEFT JOIN echoes ON echoes.topic = newest.topic AND echoes.partition = newest.partition
    AND echoes.generation = newest.generation AND echoes.key = newest.key AND echoes.offset > newest.offset
  WHERE newest.offset <= newest.last AND NOT newest.goes
),
overtaking AS (
  SELECT last_ones.topic, last_ones.partition, last_ones.generation, last_ones.offset
  FROM last_ones
  JOIN offset_translation AS map ON map.flow = :flow AND map.topic = last_ones.topic
    AND map.partition = last_ones.partition AND map.generation = last_ones.generation
    AND last_ones.offset BETWEEN map.source_first AND map.source_last
    AND (last_ones.offset - map.source_first) % map.stride = 0
  JOIN offset_translation AS back ON back.flow = :back AND back.target_topic = last_ones.topic
    AND back.target_partition = last_ones.partition AND back.topic = map.target_topic
    AND back.partition = map.target_partition AND last_ones.echo BETWEEN back.target_first AND back.target_last
  WHERE last_ones.echo IS NOT NULL
    AND back.source_first + (last_ones.echo - back.target_first) * back.stride
        < map.target_first + (last_ones.offset - map.source_first) DIV map.stride
)
SELECT topic, partition, generation, offset FROM last_ones WHERE echo IS NULL
UNION ALL
SELECT topic, partition, generation, offset FROM overtaking
UNION ALL
SELECT topic, partition, generation, offset FROM sent WHERE key IS NULL AND offset <= last
