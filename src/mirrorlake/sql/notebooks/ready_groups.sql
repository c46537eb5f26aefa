-- Which groups could fail over now, and how old that knowledge is. Parameters: flow.
SELECT group_id, count(*) AS partitions,
       sum(CASE WHEN other_log IS NULL AND (reason IS NULL OR synced AND reason NOT LIKE 'the position is ahead of the mirror%'
                                            AND reason NOT LIKE 'the position lies behind the end%'
                                            AND reason NOT LIKE '%of what it has not read, records are not there%')
                THEN 1 ELSE 0 END) AS ready,
       max(coalesce(other_log, reason)) AS what_is_said, max(checkpointed_at) AS newest_checkpoint
FROM group_positions
WHERE flow = :flow
GROUP BY group_id
ORDER BY group_id
