-- When landing a cluster came to a time: the first landed batch that has a record of after it (null where none has); and
-- the newest batch before that of which it was noted where logs ended (null: none was). In ms. Parameters:
-- source_cluster, until_ms.
WITH came AS (
  SELECT min(batch_id) AS horizon
  FROM records
  WHERE source_cluster = :source_cluster AND batch_id > :until_ms AND coalesce(timestamp_ms, unix_millis(timestamp)) > :until_ms
)
SELECT max(horizon) AS horizon,
       max(CASE WHEN open_ends IS NOT NULL AND batch_id < coalesce(horizon, batch_id + 1) THEN batch_id END) AS noted
FROM records CROSS JOIN came
WHERE source_cluster = :source_cluster
