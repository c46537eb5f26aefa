"""The codec that each shard of a flow compresses with.

A broker measures a batch as it is sent, compressed (`max.message.bytes`). A flow's batches are its
own: a record that the source took compressed by zstd may be too large by lz4, which costs less. So
a shard whose target refuses a record for its size goes on with the densest codec, from that record
on, unless the topology file names one.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from mirrorlake.kafka.client_settings import Settings
from mirrorlake.produce.parking import SIZE_REFUSALS
from mirrorlake.produce.spec import PRODUCER_SETTINGS

#: The codec that mostly makes records smallest.
DENSEST = "zstd"
COMPRESSION = "compression.type"
#: librdkafka's names of the setting; it lets the later one win.
_NAMES = (COMPRESSION, "compression.codec")


class Codecs:
    """The codecs of one flow; `settings` are a producer's, over our own."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._given = named_codec(settings)
        self._denser: set[int] = set()

    def settings(self, shard: int) -> Settings:
        """The settings of a shard's producer."""
        return {**self._settings, COMPRESSION: DENSEST} if shard in self._denser else self._settings

    def codec_of(self, shard: int) -> str:
        """The codec of a shard."""
        usual = self._given or str(PRODUCER_SETTINGS[COMPRESSION])
        return DENSEST if shard in self._denser else usual

    def final(self, refused: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The refusals of a batch (rows of `report.RESULT`) that no other codec helps; the shards
        of the others use another codec from now on, and have to try again."""
        rows = list(refused)
        if self._given is not None:
            return rows
        again = {row["shard"] for row in rows if of_size(row)} - self._denser
        self._denser |= again
        return [row for row in rows if not (of_size(row) and row["shard"] in again)]


def of_size(row: Mapping[str, Any]) -> bool:
    """Whether a partition stopped at a record that is too large."""
    records = row["refused_records"]
    return bool(records) and records[0]["reason"] in SIZE_REFUSALS


def named_codec(settings: Settings) -> str | None:
    """The codec that a producer's settings name; None if they leave it to us."""
    return next((str(settings[name]) for name in _NAMES if name in settings), None)
