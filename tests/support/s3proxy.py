"""S3 on this machine by a second implementation: S3Proxy (Maven), over a folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mirrorlake.devtools.local.metastore import BUCKET
from mirrorlake.devtools.local.ports import free_ports
from mirrorlake.devtools.local.process import server
from mirrorlake.spark.jars import JarSet, jars_of
from mirrorlake.spark.java import find_java
from tests.support.object_store import SECRET, Store

JARS = JarSet("s3proxy", "S3Proxy", 90, ("org.gaul:s3proxy:2.6.0",))


@contextmanager
def s3proxy(folder: Path) -> Iterator[Store]:
    """A server on a free port, with an empty bucket."""
    (port,) = free_ports(1)
    objects, settings = folder / "objects", folder / "s3proxy.properties"
    (objects / BUCKET).mkdir(parents=True)
    lines = {
        "s3proxy.endpoint": f"http://127.0.0.1:{port}",
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": "local",
        "s3proxy.credential": SECRET,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.identity": "local",
        "jclouds.credential": SECRET,
        "jclouds.filesystem.basedir": objects,
        # checksums of requests are among what it does not know
        "s3proxy.ignore-unknown-headers": "true",
    }
    settings.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    quiet = folder / "logback.xml"
    quiet.write_text('<configuration><root level="OFF"/></configuration>')
    command = [str(find_java()), "-Xmx256m", f"-Dlogback.configurationFile={quiet}"]
    command += ["-cp", ":".join(map(str, jars_of(JARS)))]
    command += ["org.gaul.s3proxy.Main", "--properties", str(settings)]
    with server(command, port, folder / "s3proxy.log"):
        yield Store(f"http://127.0.0.1:{port}")
