"""The settings of `mirrorlake maintain` in the topology file."""

from pydantic import Field

from mirrorlake.config.fields import Model


class Maintenance(Model):
    """How long the lake keeps what. `retention_days` is of `records`, by the time of landing; null
    keeps them for ever. `disabled_hold_days` is how long records that only disabled flows lack are
    kept for them, by the same time.

    `history_days` is of `latency`, `positions`, `checkpoints` and `changes`, and of `incidents`
    that are over; `vacuum_hours` is how long files stay that no version needs any more, for readers
    that began before.
    """

    retention_days: int | None = Field(default=None, ge=1)
    disabled_hold_days: int = Field(default=30, ge=0)
    history_days: int = Field(default=90, ge=1)
    vacuum_hours: int = Field(default=168, ge=1)
