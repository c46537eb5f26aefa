-- Differences that an operator knows of. Parameters: flow.
SELECT topic, partition, coalesce(generation, 0) AS generation, coalesce(target_generation, 0) AS target_generation,
       first_offset, last_offset
FROM incidents
WHERE flow = :flow AND kind = 'content_differs' AND resolution = 'acknowledge'
