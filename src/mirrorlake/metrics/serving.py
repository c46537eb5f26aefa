"""A run that is served to Prometheus, or sent by OTLP: its standing, by the `metrics` block."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from mirrorlake.config.metrics import Metrics
from mirrorlake.metrics.standing import Standing

logger = logging.getLogger(__name__)


@contextmanager
def published(
    metrics: Metrics, phase: Callable[[], tuple[str, float] | None]
) -> Iterator[Standing]:
    """Serve and send the standing of this process while the block runs; see `server.serving` and
    `sender.sending`. `phase` gives what the start is at, and for how many seconds."""
    standing = Standing(phase)
    with ExitStack() as ways:
        if metrics.address is not None:
            from mirrorlake.metrics.server import serving  # of an extra

            port = ways.enter_context(serving(metrics.address, standing.facts, metrics.max_series))
            logger.info("metrics are served at port %d", port, extra={"facts": {"port": port}})
        if metrics.otlp is not None:
            from mirrorlake.metrics.sender import sending  # of another one

            ways.enter_context(sending(metrics.otlp, standing.facts, metrics.max_series))
        yield standing
