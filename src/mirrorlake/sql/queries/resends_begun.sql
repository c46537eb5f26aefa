-- Replays and restores that began and have not ended. No parameters.
SELECT DISTINCT flow
FROM (
  SELECT flow, resource, max_by(outcome, at) AS outcome
  FROM changes
  WHERE kind IN ('replay', 'restore')
  GROUP BY flow, resource
)
WHERE outcome = 'begun'
