-- What landed batches of a cluster note of logs that went on behind them (offsets/as_of.py). Parameters:
-- source_cluster, first_ms, last_ms (inclusive).
SELECT batch_id, max(open_ends) AS open_ends
FROM records
WHERE source_cluster = :source_cluster AND batch_id BETWEEN :first_ms AND :last_ms
GROUP BY batch_id
