"""Which paths of a topology file are URLs. Pure, and free of libraries: tasks import it too."""


def is_url(path: str) -> bool:
    """Whether a text is the URL of an object store."""
    return "://" in path and not path.startswith("file:")
