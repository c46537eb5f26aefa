"""The `lake` and `maintenance` blocks of the topology file: where tables are, and how long."""

import re
from typing import Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from mirrorlake.config.fields import Model, relative_to_file
from mirrorlake.config.idle import CATALOG, FOLDER, IdlePace, pace_in_store
from mirrorlake.config.urls import is_url


class Warehouse(Model):
    """A SQL warehouse that answers queries on a catalog; names as in its connection details in the
    workspace. Values may be references."""

    server_hostname: str = Field(min_length=1)
    http_path: str = Field(min_length=1)
    access_token: SecretStr


class Lake(Model):
    """Where the tables are: at a path, or in a schema as a catalog's own, which a SQL warehouse may
    read. Tables at a path may also be registered in a catalog (`mirrorlake register`).

    `path` may be the URL of an object store. `storage` has delta-rs' options to reach it; the
    credentials are those that a workspace lends (`credentials`), or those in `storage` or of the
    process. Rows without news are written there every `idle_seconds`. `checkpoints` is a folder; a
    catalog's own tables need one.
    """

    path: str | None = None
    storage: dict[str, str] = {}
    credentials: Literal["unity_catalog"] | None = None
    #: Readers look back 65 minutes for rows that are rewritten within 60.
    idle_seconds: int | None = Field(default=None, ge=10, le=240)
    catalog: str | None = None
    schema_name: str | None = Field(default=None, alias="schema")
    checkpoints: str | None = None
    warehouse: Warehouse | None = None

    @field_validator("path", "checkpoints")
    @classmethod
    def _has_no_variable(cls, value: str | None) -> str | None:
        """Refuse a variable: it is not expanded, and a folder of that name would be made."""
        variable = re.search(r"\$(\w+|\{[^}]*\})", value or "")
        if variable and not is_url(value or ""):
            raise ValueError(
                f"names {variable[0]}, and nothing is put in its place: write the folder itself; ~ "
                "is your home"
            )
        return value

    _resolve_paths = field_validator("path", "checkpoints")(relative_to_file)

    @model_validator(mode="after")
    def _one_place(self) -> "Lake":
        if bool(self.catalog) != bool(self.schema_name) or not (self.path or self.catalog):
            raise ValueError("needs path, or catalog and schema, or all three")
        if self.storage and not self.path:
            raise ValueError("storage is about a path")
        if self.credentials is not None and not self.in_store:
            raise ValueError("credentials are for a path that is a URL of an object store")
        if self.idle_seconds is not None and not self.in_store:
            raise ValueError("idle_seconds is about a path that is a URL of an object store")
        if self.warehouse is not None and not self.catalog:
            raise ValueError("a warehouse reads a catalog and schema, and no path")
        return self

    @property
    def in_store(self) -> bool:
        """Whether the tables are in an object store (`lake/place.py` opens it)."""
        return is_url(self.path or "")

    @property
    def pace(self) -> IdlePace:
        """How often the lake is written to and read while idle."""
        if self.path is None:
            return CATALOG
        return pace_in_store(self.idle_seconds) if self.in_store else FOLDER


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
