-- The greatest time of a row of `changes`, behind which the next one comes, whatever the clocks say.
SELECT max(at) AS at
FROM changes
