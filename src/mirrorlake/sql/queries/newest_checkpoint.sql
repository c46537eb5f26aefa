-- The greatest time of a row of `checkpoints`, behind which the next one comes, whatever the clocks say.
SELECT max(checkpointed_at) AS at
FROM checkpoints
