-- Close what stopped a flow, since it runs again. Parameters: flow.
UPDATE incidents
SET resolved_at = current_timestamp(), resolution = 'the flow came through again'
WHERE flow = :flow AND resolved_at IS NULL
