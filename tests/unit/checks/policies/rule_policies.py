"""Naming policies as users write them, for the tests; found beside the topology file."""


class Suffix:
    """`orders-from-east`: as good as the default policy."""

    def __init__(self, aliases: frozenset[str]) -> None:
        self.aliases = aliases

    def remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}-from-{source_alias}"

    def source_of(self, topic: str) -> str | None:
        _, found, alias = topic.rpartition("-from-")
        return alias if found and alias in self.aliases else None

    def upstream_topic(self, topic: str) -> str | None:
        return topic.rpartition("-from-")[0] if self.source_of(topic) else None


class Blind:
    """Does not know its own mirrors."""

    def remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}-from-{source_alias}"

    def source_of(self, topic: str) -> str | None:
        return None

    def upstream_topic(self, topic: str) -> str | None:
        return None


class Lower(Blind):
    """Makes one topic of Orders and orders."""

    def remote_topic(self, source_alias: str, topic: str) -> str:
        return topic.lower()
