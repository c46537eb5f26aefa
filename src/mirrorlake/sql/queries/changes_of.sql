-- All different changes of one kind that were recorded for a flow, in the order in which each was made last.
-- Parameters: flow, kind.
SELECT kind, resource, before, after, outcome, max_by(error, at) AS error, policy
FROM changes
WHERE flow = :flow AND kind = :kind
GROUP BY kind, resource, before, after, outcome, policy
ORDER BY max(at)
