"""When to replace a client of librdkafka: at each answer librdkafka (2.16) iterates over all
partitions that a client has ever been used for. Pure."""

#: From how many partitions on, at how many times as many as are in use, and after how many batches
#: in a row a client is outgrown.
MANY, TIMES, BATCHES = 500, 4, 30


class Breadth:
    """How many partitions a client knows, compared with those of its batches."""

    def __init__(self) -> None:
        self._narrow = 0  # batches in a row

    def is_outgrown(self, known: int, used: int) -> bool:
        """Whether a new client would do less work for the next batch. Call it once per batch:
        `used` is its number of partitions, `known` that of all for which the client was used."""
        few = known > max(MANY, TIMES * used)
        self._narrow = self._narrow + 1 if few else 0
        return self._narrow > BATCHES
