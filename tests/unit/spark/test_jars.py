"""The jar cache: whole sets or nothing, one resolve for all processes. Ivy itself is replaced
here."""

import threading
from pathlib import Path

import pytest

from mirrorlake.errors import InputError
from mirrorlake.spark import jars

BROKER = jars.JarSet("kafka", "Kafka broker", 40, ("org.example:broker:1.0",))


class FakeIvy:
    """Stands in for `run_ivy`: writes jars, or stops half way."""

    def __init__(
        self, *names: str, code: int = 0, fails: type[BaseException] | None = None
    ) -> None:
        self.names, self.code, self.fails, self.calls = names, code, fails, 0

    def __call__(self, jar_set: jars.JarSet, target: Path, ivy_cache: Path, log: Path) -> int:
        self.coordinates = jar_set.coordinates
        self.calls += 1
        for name in self.names:
            (target / name).write_bytes(b"jar")
            if self.fails is not None:
                raise self.fails
        log.write_text("what Ivy said", encoding="utf-8")
        return self.code


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache of this test's own."""
    monkeypatch.setenv("MIRRORLAKE_CACHE", str(tmp_path))
    return tmp_path / "jars"


def use(monkeypatch: pytest.MonkeyPatch, ivy: FakeIvy) -> FakeIvy:
    monkeypatch.setattr("mirrorlake.spark.jars.run_ivy", ivy)
    return ivy


def test_second_call_starts_nothing_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ivy = use(monkeypatch, FakeIvy("b-1.jar", "a-2.jar"))
    lines: list[str] = []
    first = jars.jars_of(BROKER, lines.append)
    second = jars.jars_of(BROKER, lines.append)
    assert [jar.name for jar in first] == ["a-2.jar", "b-1.jar"]
    assert second == first
    assert ivy.calls == 1
    assert lines == ["resolving Kafka broker jars, once (about 40 s)…"]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, OSError])
def test_interrupted_resolve_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, cache: Path, interruption: type[BaseException]
) -> None:
    use(monkeypatch, FakeIvy("a-1.jar", "b-1.jar", fails=interruption))
    with pytest.raises(interruption):
        jars.jars_of(BROKER)
    assert list(cache.glob("kafka-*")) == []
    assert list(cache.glob(".resolving-*")) == []
    use(monkeypatch, FakeIvy("a-1.jar", "b-1.jar"))
    assert len(jars.jars_of(BROKER)) == 2


def test_half_set_of_a_killed_process_is_not_used(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    half = cache / ".resolving-killed"
    half.mkdir(parents=True)
    (half / "a-1.jar").write_bytes(b"ha")
    use(monkeypatch, FakeIvy("a-1.jar", "b-1.jar"))
    assert len(jars.jars_of(BROKER)) == 2
    assert not half.exists()


def test_failed_resolve_names_its_log(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    use(monkeypatch, FakeIvy("a-1.jar", code=1))
    with pytest.raises(InputError, match="org.example:broker:1.0") as raised:
        jars.jars_of(BROKER)
    log = raised.value.message.partition(": see ")[2].partition(",")[0]
    assert Path(log).read_text(encoding="utf-8") == "what Ivy said"
    assert list(cache.glob("kafka-*/*")) == []


def test_concurrent_calls_resolve_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ivy = use(monkeypatch, FakeIvy("a-1.jar"))
    threads = [threading.Thread(target=jars.jars_of, args=(BROKER,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ivy.calls == 1


def test_jars_that_spark_carries_are_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    carried = tmp_path / "pyspark"
    carried.mkdir()
    (carried / "slf4j-api-2.0.16.jar").touch()
    use(
        monkeypatch,
        FakeIvy("slf4j-api-1.7.36.jar", "kafka-clients-3.9.0.jar", "commons-logging-1.3.0.jar"),
    )
    found = jars.jars_of(jars.JarSet("spark", "connector", 1, ("g:a:1",), carried))
    assert [jar.name for jar in found] == ["kafka-clients-3.9.0.jar"]


@pytest.mark.parametrize("minor", jars.SPARK_MINORS)
def test_deltas_jar_is_that_of_the_installed_spark(
    monkeypatch: pytest.MonkeyPatch, minor: str
) -> None:
    monkeypatch.setattr("mirrorlake.spark.jars.version", lambda _name: f"{minor}.3")
    ivy = use(monkeypatch, FakeIvy("delta-1.jar"))
    jars.spark_jars()
    assert ivy.coordinates == (f"io.delta:delta-spark_{minor}_2.13:{jars.DELTA_VERSION}",)


def test_a_spark_that_delta_has_no_jar_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirrorlake.spark.jars.version", lambda _name: "3.5.9")
    with pytest.raises(InputError, match="no jar for Spark 3.5: install a pyspark of 4.0, 4.1"):
        jars.spark_jars()


def test_a_version_that_a_set_names_for_what_it_needs_goes_to_ivy() -> None:
    named = jars.JarSet("a", "A", 1, ("g:a:2",), overrides=("g:b:1",))
    module = jars._ivy_module(named)
    assert '<dependency org="g" name="a" rev="2"' in module
    assert '<override org="g" module="b" rev="1"/>' in module
    assert jars._folder_name(named) != jars._folder_name(jars.JarSet("a", "A", 1, ("g:a:2",)))


@pytest.mark.parametrize(
    ("jar", "artifact"),
    [
        ("kafka_2.13-4.1.1.jar", "kafka_2.13"),
        ("spark-sql-kafka-0-10_2.13-4.0.0.jar", "spark-sql-kafka-0-10_2.13"),
        ("javassist-3.30.2-GA.jar", "javassist"),
        ("log4j-1.2-api-2.24.3.jar", "log4j-1.2-api"),
        ("delta-spark_4.0_2.13-4.4.0.jar", "delta-spark_4.0_2.13"),
        ("jline-3.27.1-jdk8.jar", "jline"),
    ],
)
def test_artifact_of(jar: str, artifact: str) -> None:
    assert jars.artifact_of(jar) == artifact
