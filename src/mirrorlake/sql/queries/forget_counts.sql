-- How many records of each topic may be deleted, and in how many files, and how many have to wait for a flow.
-- Frames: picked (as forget_picked gives it).
SELECT topic, count_if(NOT waits) AS records, count(DISTINCT CASE WHEN NOT waits THEN path END) AS files,
       count_if(waits) AS waiting
FROM {picked}
GROUP BY topic
ORDER BY topic
