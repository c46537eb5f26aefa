-- How each topic of a cluster was at a time, by what was noted until then; where nothing was, by the first note after it
-- (noted_later), of a topic that an earlier version of the lake had landed already. Parameters: cluster, until_ms.
WITH noted AS (
  SELECT *, unix_millis(since) > :until_ms AS is_later
  FROM states
  WHERE cluster = :cluster
),
ranked AS (
  SELECT *, row_number() OVER (
              PARTITION BY topic ORDER BY is_later, CASE WHEN is_later THEN NULL ELSE since END DESC, since) AS place
  FROM noted
)
SELECT topic, partitions, factor, configs, acls, topic_id, since, is_later AS noted_later
FROM ranked
WHERE place = 1
