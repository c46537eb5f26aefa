-- How many records a landing batch brought, in all and of one partition. Parameters: flow, topic, partition, batch_id.
SELECT count(*) AS record_count, count_if(topic = :topic AND partition = :partition) AS of_partition
FROM records
WHERE source_cluster = split(:flow, '->')[0] AND batch_id = :batch_id
