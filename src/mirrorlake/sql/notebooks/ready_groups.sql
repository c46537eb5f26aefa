-- Which groups could fail over now, and how old that knowledge is. Parameters: flow.
SELECT group_id, count(*) AS partitions, sum(CASE WHEN reason IS NULL OR synced THEN 1 ELSE 0 END) AS ready,
       max(reason) AS what_is_said, max(checkpointed_at) AS newest_checkpoint
FROM group_positions
WHERE flow = :flow
GROUP BY group_id
ORDER BY group_id
