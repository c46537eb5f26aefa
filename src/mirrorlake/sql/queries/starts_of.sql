-- Where flows from a source cluster began, as each of them noted it first. Parameters: prefix (of the flows' names).
SELECT flow, topic, partition, generation, first_offset
FROM (SELECT starts.*, min(noted_at) OVER (PARTITION BY flow) AS noted_first FROM starts)
WHERE noted_at = noted_first AND startswith(flow, :prefix)
