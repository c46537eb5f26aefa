-- Differences that an operator knows of. Parameters: flow.
SELECT topic, partition, first_offset, last_offset
FROM incidents
WHERE flow = :flow AND kind = 'content_differs' AND resolution = 'acknowledge'
