-- All changes of one kind that a flow recorded, oldest first. Parameters: flow, kind.
SELECT kind, resource, before, after, outcome, error
FROM changes
WHERE flow = :flow AND kind = :kind
ORDER BY at
