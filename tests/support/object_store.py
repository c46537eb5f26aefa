"""A lake of tests in S3 on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from mirrorlake.devtools.local import metastore as local
from mirrorlake.devtools.local.metastore import BUCKET, ENVIRONMENT, ObjectStore
from mirrorlake.lake.place import Place, place_of

#: What `Store.options` refer to, for the environment of who opens a lake there.
((KEY, SECRET),) = ENVIRONMENT.items()


class Store(ObjectStore):
    """A running server, or a link to one, with lakes of topology files."""

    def hold(self, topology: Path, name: str, **options: str) -> str:
        """Let the lake of a topology file lie here, with more options. Returns its URL."""
        document = yaml.safe_load(topology.read_text(encoding="utf-8"))
        document["lake"] = self.lake(name, **options)
        topology.write_text(yaml.safe_dump(document), encoding="utf-8")
        return f"s3://{BUCKET}/{name}"

    def place(self, name: str) -> Place:
        """Where a lake of a name is, for a process that has resolved the options."""
        options = {**self.options, "AWS_SECRET_ACCESS_KEY": SECRET}
        return place_of(f"s3://{BUCKET}/{name}", options)


@contextmanager
def moto_server(folder: Path) -> Iterator[Store]:
    """A server on a free port, with an empty bucket."""
    with local.object_store(folder) as store:
        yield Store(store.address)
