-- The batch that brought a record to the target, and its minute as text. None where `maintain` merged its row of the map.
-- Parameters: flow, topic, partition, offset.
SELECT batch_id, date_format(date_trunc('MINUTE', produced_at), 'yyyy-MM-dd HH:mm:ss.SSSXXX') AS minute
FROM offset_map
WHERE flow = :flow AND topic = :topic AND partition = :partition AND source_first <= :offset AND source_last >= :offset
  AND first_batch_id IS NULL AND produced_at IS NOT NULL
ORDER BY coalesce(generation, 0) DESC, coalesce(target_generation, 0) DESC
LIMIT 1
