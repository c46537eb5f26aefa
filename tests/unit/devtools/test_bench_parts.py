"""What `mirrorlake bench` measures, and what a checkout measures more. No clusters."""

from io import StringIO

import pytest
from rich.console import Console

from mirrorlake.cli.bench import OF_A_CHECKOUT, RACE, Bench, BenchLake
from mirrorlake.cli.main import CommandEnded, main
from mirrorlake.devtools.bench.run import PARTS as PARTS_OF_THE_RACE
from mirrorlake.errors import InputError
from tests.bench.__main__ import Checkout
from tests.bench.parts import AFTER, PARTS
from tests.bench.soak import SoakSample, soak_document
from tests.bench.tables import tables

BOTH = pytest.mark.parametrize("bench", [Bench(), Checkout()])


@pytest.mark.parametrize("part", OF_A_CHECKOUT)
def test_what_a_checkout_measures_it_measures_in_folders(part: str) -> None:
    with pytest.raises(InputError, match=f"--only {part} measures lakes in folders"):
        Checkout().parts(part, BenchLake.s3)
    assert part not in Checkout().parts(None, BenchLake.s3)
    assert Checkout().parts(part, BenchLake.folder) == {part}


@BOTH
def test_a_part_of_the_race_is_measured_alone(bench: Bench) -> None:
    for part in RACE:
        more = {"latency"} if part == "feel" else set[str]()
        assert bench.parts(part, BenchLake.catalog) == {part} | more


@BOTH
def test_what_takes_long_is_measured_only_alone(bench: Bench) -> None:
    race = {"throughput", "fan-out", "latency", "feel"}
    more = {"proof", "control"} if isinstance(bench, Checkout) else set[str]()
    assert bench.parts(None, BenchLake.catalog) == race
    assert bench.parts(None, BenchLake.folder) == race | more


@BOTH
def test_an_unknown_part_is_refused(bench: Bench) -> None:
    with pytest.raises(InputError, match="has throughput, .*, and in a checkout .*control"):
        bench.parts("contrl", BenchLake.folder)


def test_the_commands_know_all_parts() -> None:
    assert tuple(PARTS_OF_THE_RACE) == RACE
    assert PARTS.keys() == {*RACE, *OF_A_CHECKOUT} >= {part for part, _ in AFTER}


@pytest.mark.parametrize("part", OF_A_CHECKOUT)
def test_the_command_says_what_to_type_for_a_part_of_a_checkout(
    part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandEnded) as ended:
        main(["bench", "--only", part])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert not said.out and said.err == (
        f"mirrorlake: only a checkout of mirrorlake measures {part}: type there make bench "
        f'ARGS="--only {part}"\n'
    )


def test_an_option_of_a_checkout_alone_is_none_of_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(CommandEnded) as ended:
        main(["bench", "--minutes", "20"])
    assert ended.value.code == 2 and "--minutes" in capsys.readouterr().err


def test_starts_and_the_stage_have_tables() -> None:
    one = dict.fromkeys(
        (
            "build_seconds",
            "build_cpu_seconds",
            "mib",
            "peak_mib",
            "plan_ms",
            "plan_cpu_ms",
            "plan_max_ms",
        ),
        1.5,
    )
    lakes = {lake: {"open": 1.25, "map": 2.5} for lake in ("day", "year", "year_maintained")}
    document = {
        "stage": {"files": 100_000, "partitions": 1_000, "cold": one, "restart": one},
        "starts": {
            **lakes,
            "runs": 10_000_000,
            "commits": 600_000,
            "ratio": 9.5,
            "ratio_maintained": 1.25,
        },
    }
    console = Console(file=StringIO(), width=200)
    for table in tables(document):
        console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(
        word in text for word in ("100,000 files", "10,000,000 runs", "9.50x", "1.25x", "3.75")
    )


def test_a_soak_compares_the_last_stretch_with_the_second() -> None:
    """The first one has the start in it; a spike of a moment is no growth."""
    samples = [
        SoakSample(at, at * 1000, 300 + at // 60, 900, 5000 if at == 3500 else 700, at)
        for at in range(0, 3601, 5)
    ]
    found = soak_document(samples)
    assert [one["minutes"] for one in found["stretches"]] == [10, 20, 30, 40, 50, 60]
    assert {one["records_per_second"] for one in found["stretches"]} == {1000}
    assert {one["cpu_seconds_per_million"] for one in found["stretches"]} == {1000.0}
    assert found["growth"] == {"driver_mib": 40, "jvm_mib": 0, "workers_mib": 0}
    text = Console(file=(out := StringIO()), width=120)
    text.print(*tables({"soak": found}))
    assert "+40" in out.getvalue() and "3,600,000 records" in out.getvalue()
