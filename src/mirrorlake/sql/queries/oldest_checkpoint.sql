-- When the oldest checkpoint was made. No parameters.
SELECT min(checkpointed_at) AS at FROM checkpoints
