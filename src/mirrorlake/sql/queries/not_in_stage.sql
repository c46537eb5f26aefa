-- Which offsets of the topics of a cluster were deleted from the stage since a replay or restore began, or were passed over
-- when they were landed; inclusive. Clocks of two hosts may differ by some minutes. Parameters: source_cluster, flow (its
-- name).
WITH began AS (
  SELECT min(at) - INTERVAL 5 MINUTES AS began FROM changes WHERE flow = :flow AND outcome = 'begun'
)
SELECT topic, partition, generation, first_offset, last_offset
FROM forgotten CROSS JOIN began
WHERE source_cluster = :source_cluster AND noted_at >= began
UNION ALL
SELECT topic, partition, generation, first_offset, below - 1
FROM removals CROSS JOIN began
WHERE source_cluster = :source_cluster AND removed_at >= began
