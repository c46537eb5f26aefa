-- A row if any flow of the lake has ever begun, of whatever version.
SELECT flow FROM (
  SELECT flow FROM starts
  UNION ALL
  SELECT flow FROM target_generations
  UNION ALL
  SELECT flow FROM offset_map
)
LIMIT 1
