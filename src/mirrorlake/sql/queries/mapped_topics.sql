-- The topics of a flow that are in its map. Parameters: flow.
SELECT DISTINCT topic FROM offset_map WHERE flow = :flow
