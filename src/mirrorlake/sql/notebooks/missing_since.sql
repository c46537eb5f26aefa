-- What is in the stage and not on the target, since when, and what is said about it: by the newest incident of the partition,
-- or of its topic as a whole. Parameters: flow.
WITH missing AS (SELECT * FROM divergence WHERE flow = :flow),
first_of AS (
  SELECT records.topic, records.partition, records.offset, coalesce(records.generation, 0) AS generation,
         records.timestamp AS written_at, records.landed_at
  FROM records
  JOIN missing ON records.topic = missing.topic AND records.partition = missing.partition
    AND records.offset = missing.first_offset AND coalesce(records.generation, 0) = missing.generation
  WHERE records.source_cluster = split(:flow, '->')[0]
),
said AS (
  -- Of several of one moment one, and the same one each time, whichever engine answers.
  SELECT places.topic, places.partition, max(struct(at, kind, coalesce(resolution, 'open') AS decision)) AS newest
  FROM (SELECT DISTINCT topic, partition FROM missing) AS places
  JOIN incidents ON incidents.flow = :flow AND incidents.topic = places.topic
    AND (incidents.partition = places.partition OR incidents.partition IS NULL)
  GROUP BY places.topic, places.partition
)
SELECT missing.topic, missing.partition, missing.first_offset, missing.last_offset, missing.record_count,
       first_of.written_at, first_of.landed_at AS missing_since, said.newest.kind AS incident,
       said.newest.decision AS decision
FROM missing
LEFT JOIN first_of ON first_of.topic = missing.topic AND first_of.partition = missing.partition
  AND first_of.offset = missing.first_offset AND first_of.generation = missing.generation
LEFT JOIN said ON said.topic = missing.topic AND said.partition = missing.partition
ORDER BY missing.topic, missing.partition, missing.first_offset
