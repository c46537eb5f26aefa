-- Delete incidents that were over before a time, and of which nothing goes by how they ended: those that ended by
-- themselves, were tried again, or were acknowledged, except for differences, which `verify` does not tell again. What an
-- operator decided otherwise (skip, park, continue, stop, again, a new generation, or what a newer version offers) stays
-- for ever: flows and landing ask for it at each start. Parameters: cutoff_ms.
DELETE FROM incidents
WHERE resolved_at < timestamp_millis(:cutoff_ms)
  AND (resolution IN ('it came through again', 'the flow went on behind the records', 'the topic is the one that it was',
                      'retry')
       OR resolution = 'acknowledge' AND kind <> 'content_differs')
