-- Resends of a kind that began and have not ended, oldest first: a row for each target topic, with all that was noted.
-- Parameters: kind.
WITH noted AS (
  SELECT flow, resource, max_by(after, at) AS after, max_by(outcome, at) AS outcome, min(at) AS began
  FROM changes
  WHERE kind = :kind
  GROUP BY flow, resource
)
SELECT flow, resource, after
FROM noted
WHERE outcome = 'begun'
ORDER BY began, flow, resource
