-- How each topic of a cluster was last. Parameters: cluster.
SELECT topic, max_by(partitions, since) AS partitions, max_by(factor, since) AS factor,
       max_by(configs, since) AS configs, max_by(topic_id, since) AS topic_id
FROM states
WHERE cluster = :cluster
GROUP BY topic
