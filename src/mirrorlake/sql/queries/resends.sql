-- Resends of a kind that began and have not ended, oldest first: a row for each target topic, with all that was noted. What
-- has ended has done so whatever clock it ended by. Parameters: kind.
WITH noted AS (
  SELECT flow, resource, max_by(after, at) AS after, min(at) AS began, sum(IF(outcome = 'begun', 0, 1)) AS ended
  FROM changes
  WHERE kind = :kind
  GROUP BY flow, resource
)
SELECT flow, resource, after
FROM noted
WHERE ended = 0
ORDER BY began, flow, resource
