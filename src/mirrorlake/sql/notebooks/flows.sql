-- Every flow that the lake knows something of, and not only that it waits.
SELECT flow FROM flow_status WHERE coalesce(sampled_at, last_produced_at) IS NOT NULL ORDER BY flow
