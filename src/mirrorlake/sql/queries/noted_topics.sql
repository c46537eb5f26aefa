-- The topics that a flow has written to, or was about to. Parameters: flow.
SELECT DISTINCT topic FROM target_generations WHERE flow = :flow
