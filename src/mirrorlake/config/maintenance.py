"""The settings of `mirrorlake maintain` in the topology file."""

from pydantic import Field

from mirrorlake.config.fields import Model


class Maintenance(Model):
    """How long the lake keeps things. `retention_days` is for `records`, counted from landing; null
    keeps them for ever. `disabled_hold_days` is how long, counted likewise, records that only
    disabled flows still need are kept for these.

    `history_days` is for `latency`, `positions`, `checkpoints`, `changes` and closed `incidents`.
    `vacuum_hours` is how long files that no version needs stay, for readers that began earlier.
    """

    retention_days: int | None = Field(default=None, ge=1)
    disabled_hold_days: int = Field(default=30, ge=0)
    history_days: int = Field(default=90, ge=1)
    vacuum_hours: int = Field(default=168, ge=1)
