-- Resends of a kind that began and have not ended, oldest first: a row for each target topic, with all that was noted.
-- Parameters: kind.
SELECT flow, resource, max_by(after, at) AS after
FROM changes
WHERE kind = :kind
GROUP BY flow, resource
HAVING max_by(outcome, at) = 'begun'
ORDER BY min(at), resource
