-- Delete changes made before a time. The newest of each resource stays, of ACLs the newest of each, since control goes by
-- them: which topics were said to be gone, which ACLs are the flow's own. Of replays and restores nothing stays once they
-- have ended: what they were asked for is in their notes. Parameters: cutoff_ms.
MERGE INTO changes AS old
USING (
  SELECT *, max(outcome <> 'begun') OVER (PARTITION BY flow, kind, resource) AS ended
  FROM (
    SELECT flow, kind, resource, outcome, IF(kind = 'acl', coalesce(after, before), NULL) AS acl, max(at) AS newest_at
    FROM changes
    GROUP BY ALL
  )
) AS kept
ON old.flow <=> kept.flow AND old.kind = kept.kind AND old.resource <=> kept.resource AND old.outcome <=> kept.outcome
  AND IF(old.kind = 'acl', coalesce(old.after, old.before), NULL) <=> kept.acl
  AND old.at < timestamp_millis(:cutoff_ms)
  AND (old.at < kept.newest_at OR kept.kind IN ('replay', 'restore') AND kept.ended)
WHEN MATCHED THEN DELETE
