"""When a client of librdkafka is better replaced: at each answer librdkafka (2.16) walks through
all partitions that a client has ever been used for. Pure."""

#: From how many partitions on that is noticed, how many times as many as are in use, and for how
#: many batches in a row.
MANY, TIMES, BATCHES = 500, 4, 30


class Breadth:
    """How many partitions a client knows, beside those that its batches have."""

    def __init__(self) -> None:
        self._narrow = 0  # batches in a row

    def is_outgrown(self, known: int, used: int) -> bool:
        """Whether a new client would do the next batch with less. To be asked once a batch: `used`
        is how many partitions it has, `known` how many the client has been used for."""
        few = known > max(MANY, TIMES * used)
        self._narrow = self._narrow + 1 if few else 0
        return self._narrow > BATCHES
