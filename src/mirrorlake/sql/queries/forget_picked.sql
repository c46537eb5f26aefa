-- The records that a predicate picks, by coordinates, with the file that each is in, and whether it has to wait for a flow.
-- Frames: found (the rows that are picked: topic, partition, generation, offset, path), doubts (as forget.doubts.Doubt).
SELECT found.topic, found.partition, found.generation, found.offset, found.path,
       EXISTS (SELECT 1 FROM {doubts} AS doubts
               WHERE doubts.topic = found.topic AND doubts.partition = found.partition
                 AND doubts.generation = found.generation
                 AND found.offset >= doubts.first AND found.offset < doubts.below) AS waits
FROM {found} AS found
