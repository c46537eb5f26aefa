-- A row if a flow has mapped something, or was about to write to a topic. Parameters: flow.
SELECT 1 AS begun FROM (
  SELECT flow FROM target_generations WHERE flow = :flow
  UNION ALL
  SELECT flow FROM offset_map WHERE flow = :flow
)
LIMIT 1
