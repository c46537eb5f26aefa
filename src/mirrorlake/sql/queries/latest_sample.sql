-- The latest time of a sample of a flow, by whichever clock, also one to come. Parameters: flow.
SELECT max(sampled_at) AS at
FROM positions
WHERE flow = :flow
