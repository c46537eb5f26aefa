"""A dashboard's server that answers for the time of a block."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mirrorlake.dashboard.server import DashboardServer


@contextmanager
def served(server: DashboardServer) -> Iterator[DashboardServer]:
    """Serve in a thread; ended, and its port given back, behind the block."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
