"""The stage within bounds, as a producer plans from it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.offsets.stage_index import StageIndex
from mirrorlake.produce.ports import Stage


class BoundedStage:
    """A stage of which only some ranges of offsets are there, whatever is landed meanwhile."""

    def __init__(self, stage: Stage, bounds: Sequence[StagedRange]) -> None:
        self._stage = stage
        self._bounds = bounds
        self._seen: StageIndex | None = None

    @property
    def storage(self) -> Mapping[str, str] | None:
        """See `produce.ports.Stage`: credentials that are lent may be others by now."""
        return self._stage.storage

    @property
    def is_its_files(self) -> bool:
        """See `produce.ports.Stage`."""
        return self._stage.is_its_files

    @contextmanager
    def reading(self) -> Iterator[StageIndex]:
        """See `produce.ports.Stage`."""
        with self._stage.reading() as index:
            if self._seen is None or self._seen.version != index.version:
                self._seen = index.bounded(self._bounds)
            yield self._seen

    def forget(self) -> None:
        """See `produce.ports.Stage`."""
        self._seen = None
        self._stage.forget()

    def invalidate(self) -> None:
        """See `produce.ports.Stage`."""
        self._seen = None
        self._stage.invalidate()
