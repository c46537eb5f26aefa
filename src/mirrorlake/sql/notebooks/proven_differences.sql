-- What `mirrorlake verify` found to differ, and no later comparison found whole: the newest verdict of each stretch of
-- source offsets (inclusive). Parameters: flow.
SELECT topic, partition, first_offset, last_offset, verdict, audited_at
FROM proofs
WHERE flow = :flow AND NOT coalesce(proven, false)
ORDER BY topic, partition, first_offset
