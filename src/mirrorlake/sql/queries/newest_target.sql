-- The greatest time of a row of `target_generations`, behind which the next one comes, whatever the clocks say.
SELECT max(started_at) AS at
FROM target_generations
