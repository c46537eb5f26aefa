-- Every flow that the lake knows.
SELECT flow FROM flow_status ORDER BY flow
