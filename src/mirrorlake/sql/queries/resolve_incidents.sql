-- Close what stopped a flow, since it runs again. Lost data and contradictions stay open until somebody decides.
-- Parameters: flow.
UPDATE incidents
SET resolved_at = current_timestamp(), resolution = 'the flow came through again'
WHERE flow = :flow AND resolved_at IS NULL AND kind IN ('flow_stopped', 'target_refused', 'landing_failed')
