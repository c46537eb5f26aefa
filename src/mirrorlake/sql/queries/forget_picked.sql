-- The records that a predicate picks, by coordinates, with the file that each is in, and whether it has to wait for a flow.
-- Frames: found (the rows that are picked: topic, partition, generation, offset, path), staged (up to where they count:
-- topic, partition, generation, below), still_needed (as forget.still_needed.StillNeeded).
SELECT found.topic, found.partition, found.generation, found.offset, found.path,
       EXISTS (SELECT 1 FROM {still_needed} AS needed
               WHERE needed.topic = found.topic AND needed.partition = found.partition
                 AND needed.generation = found.generation
                 AND found.offset >= needed.first AND found.offset < needed.below) AS waits
FROM {found} AS found
JOIN {staged} AS staged ON staged.topic = found.topic AND staged.partition = found.partition
  AND staged.generation = found.generation AND found.offset < staged.below
