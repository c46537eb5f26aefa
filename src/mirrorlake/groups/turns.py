"""The two turns of a running flow's consumer groups: two tasks of its control loop."""

from mirrorlake.config.topology import ResolvedFlow
from mirrorlake.groups.checkpointing import Checkpointing
from mirrorlake.groups.group_sync import GroupSync
from mirrorlake.groups.logs import LogStarts
from mirrorlake.groups.newest_checkpoints import NewestCheckpoints
from mirrorlake.groups.running_flow import RunningFlow
from mirrorlake.lake.deployment import Deployment
from mirrorlake.mm2.mirror_topics import CheckpointTopic


class GroupTurns:
    """Two tasks over the same newest checkpoints: `source` queries what groups committed, `target`
    sets positions. For one thread."""

    def __init__(
        self,
        flow: ResolvedFlow,
        deployment: Deployment,
        running: RunningFlow,
        topic: CheckpointTopic,
    ) -> None:
        mirror_starts = LogStarts(deployment.connections.admin(flow.target))
        newest = NewestCheckpoints(flow, deployment.lake, running, lambda _: mirror_starts.forget())
        self.source = Checkpointing(flow, deployment, newest, mirror_starts, topic)
        self.target = GroupSync(flow, deployment, newest, mirror_starts)
