"""A run that is served to Prometheus: its standing, at an address."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mirrorlake.metrics.server import serving
from mirrorlake.metrics.standing import Standing

logger = logging.getLogger(__name__)


@contextmanager
def served(
    address: str, bound: int, phase: Callable[[], tuple[str, float] | None]
) -> Iterator[Standing]:
    """Serve the standing of this process while the block runs; see `server.serving`. `phase` gives
    what the start is at, and for how many seconds."""
    standing = Standing(phase)
    with serving(address, standing.facts, bound) as port:
        logger.info("metrics are served at port %d", port, extra={"facts": {"port": port}})
        yield standing
