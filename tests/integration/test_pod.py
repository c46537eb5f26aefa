"""What the manifest of `ops/kubernetes` says, run: its command, mounts and probes, as a user
without a name, with a root that is read-only.

No cluster of Kubernetes: the kernel's own means. The process may read all files of this machine
(its environment may lie in a folder of root's), and writes only where the manifest lets it.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

from mirrorlake.devtools.local.ports import free_ports
from tests.support.clusters import ClusterPair
from tests.support.kafka import create_topic, numbered, write
from tests.support.manifests import container, pod
from tests.support.prometheus import answer
from tests.support.replication import finish
from tests.support.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or not (shutil.which("unshare") and shutil.which("setpriv")),
        reason="another user and other mounts take root, unshare and setpriv",
    ),
]
#: In a namespace of mounts of its own: all is read-only but the volumes that are not. A working
#: tree below /tmp stays in sight.
SCRIPT = r"""
set -e
mount --make-rprivate /
mount --bind "$LAKE" "$LAKE"
mount --bind "$TMP_VOLUME" "$TMP_VOLUME"
case "$CODE" in /tmp/*)
  mkdir -p "$TMP_VOLUME/${CODE#/tmp/}"
  mount --bind "$CODE" "$TMP_VOLUME/${CODE#/tmp/}";;
esac
mount -o remount,bind,ro /
mount --rbind "$TMP_VOLUME" /tmp
only=-all,+dac_read_search
exec setpriv --reuid "$USER_ID" --regid "$USER_ID" --groups "$USER_ID" --no-new-privs \
  --bounding-set=$only --inh-caps=$only --ambient-caps=$only "$@"
"""


def volume(folder: Path, mode: int) -> Path:
    """A folder of the pod's user, as a writable volume is by `fsGroup`."""
    folder.mkdir(parents=True)
    os.chown(folder, 0, pod()["securityContext"]["fsGroup"])
    folder.chmod(mode)
    return folder


def mounted_secret(folder: Path, key: str, value: str) -> None:
    """A Secret as Kubernetes mounts it: behind links, of root's, for the group."""
    data = volume(folder / "..2026_11_27", 0o750)
    (data / key).write_text(value, encoding="utf-8")
    os.chown(data / key, 0, pod()["securityContext"]["fsGroup"])
    (data / key).chmod(pod()["volumes"][1]["secret"]["defaultMode"])
    (folder / "..data").symlink_to(data.name)
    (folder / key).symlink_to(f"..data/{key}")


def test_a_pod_lives_is_ready_and_ends(clusters: ClusterPair) -> None:
    create_topic(clusters.east, "podded")
    write(clusters.east, "podded", numbered(300))
    with TemporaryDirectory(dir="/var/tmp") as place:
        root = Path(place)
        root.chmod(0o755)
        lake, tmp = volume(root / "lake", 0o2770), volume(root / "tmp", 0o2770)
        mounts = {
            mount["name"]: root / mount["mountPath"].strip("/")
            for mount in container()["volumeMounts"]
        }
        mounted_secret(mounts["kafka"], "west", clusters.west)
        mounts["topology"].mkdir(parents=True)
        file = mounts["topology"] / "mirrorlake.yml"
        document = {
            "clusters": {
                "east": {"bootstrap_servers": clusters.east},
                "west": {"bootstrap_servers": "${secret:kafka/west}"},
            },
            "lake": {"path": str(lake / "lake")},
            "flows": {
                "east->west": {
                    "topics": ["podded"],
                    "emit_checkpoints_enabled": False,
                    "emit_heartbeats_enabled": False,
                }
            },
            "tracking": {"enabled": False},
        }
        file.write_text(yaml.safe_dump(document), encoding="utf-8")
        port, environment = (
            free_ports(1)[0],
            {one["name"]: one["value"] for one in container()["env"]},
        )
        words = [sys.executable, "-m", "mirrorlake.cli.main", *container()["command"][1:]]
        words = [str(file) if word == "/etc/mirrorlake/mirrorlake.yml" else word for word in words]
        words = [f"127.0.0.1:{port}" if word == "0.0.0.0:9404" else word for word in words]
        log = root / "log"
        with log.open("wb") as lines:
            run = subprocess.Popen(
                [
                    "unshare",
                    "--mount",
                    "--propagation",
                    "private",
                    "sh",
                    "-c",
                    SCRIPT,
                    "sh",
                    *words,
                ],
                stdout=lines,
                stderr=lines,
                cwd="/",
                env={
                    "PATH": os.environ["PATH"],
                    "MIRRORLAKE_CORES": "2",
                    **environment,
                    "MIRRORLAKE_SECRETS": str(mounts["kafka"].parent),
                    "CODE": str(Path(__file__).parents[2]),
                    "LAKE": str(lake),
                    "TMP_VOLUME": str(tmp),
                    "USER_ID": str(pod()["securityContext"]["runAsUser"]),
                },
            )
        try:
            until(lambda: answer(port, "/healthz")[0] == 200 or run.poll() is not None, "it lives")
            until(
                lambda: answer(port, "/readyz")[0] == 200 or run.poll() is not None, "it is ready"
            )
            assert run.poll() is None, log.read_text(encoding="utf-8")[-4000:]
            owner = (lake / "lake").stat().st_uid
        finally:
            run.send_signal(signal.SIGTERM)
            ended = finish(run, pod()["terminationGracePeriodSeconds"])
        said = log.read_text(encoding="utf-8")
    assert (ended, owner) == (0, 20001), said[-4000:]
    # beside our lines stands what Spark writes of a query that is stopped, and what Java writes
    lines = [json.loads(line) for line in said.splitlines() if line.startswith('{"ts"')]
    ours = [line for line in lines if line["logger"].startswith("mirrorlake.")]
    assert ours and [line for line in ours if line["level"] == "ERROR"] == []
