-- Replays and restores that began and have not ended, whatever clocks said. No parameters.
SELECT DISTINCT flow
FROM (
  SELECT flow, resource, sum(IF(outcome = 'begun', 0, 1)) AS ended
  FROM changes
  WHERE kind IN ('replay', 'restore')
  GROUP BY flow, resource
)
WHERE ended = 0
