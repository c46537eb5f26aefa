-- How far a flow is: its newest batch, the version of records that it has produced, what it selected then.
-- Parameters: flow.
SELECT max(batch_id) AS batch_id, max(stage_version) AS stage_version, max_by(selection, batch_id) AS selection
FROM offset_map
WHERE flow = :flow
