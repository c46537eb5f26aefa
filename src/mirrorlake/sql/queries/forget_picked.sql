-- The records that a predicate picks, by coordinates, with the file that each is in, and whether it has to wait for a flow.
-- Frames: matching (the rows that are picked: topic, partition, generation, offset, path), staged (up to where they count:
-- topic, partition, generation, below), still_needed (as forget.still_needed.StillNeeded).
SELECT matching.topic, matching.partition, matching.generation, matching.offset, matching.path,
       EXISTS (SELECT 1 FROM {still_needed} AS needed
               WHERE needed.topic = matching.topic AND needed.partition = matching.partition
                 AND needed.generation = matching.generation
                 AND matching.offset >= needed.first AND matching.offset < needed.below) AS waits
FROM {matching} AS matching
JOIN {staged} AS staged ON staged.topic = matching.topic AND staged.partition = matching.partition
  AND staged.generation = matching.generation AND matching.offset < staged.below
