-- Replays whose predicates are in `changes`: of which cluster and topic each sent records. No parameters.
SELECT flow, split(split(flow, ':')[2], '->')[0] AS source, get_json_object(after, '$.topic') AS topic
FROM changes
WHERE kind = 'replay' AND outcome = 'begun' AND get_json_object(after, '$.request.where') IS NOT NULL
ORDER BY at, flow
