-- What was noted is deleted. Parameters: forget_id.
UPDATE forgotten SET deleted_at = current_timestamp() WHERE forget_id = :forget_id AND deleted_at IS NULL
