"""What a source lets in and the target would refuse is told before the first record, with both
numbers."""

from mirrorlake.checks.sizes import SizeLimit, size_problems

MIB = 1 << 20


def told(
    *limits: SizeLimit, batch: int = 1_000_000, message: int = 100_000_000
) -> list[tuple[str, str, str]]:
    found = list(
        size_problems(
            "east->west", ("east", "west"), limits, batch_bytes=batch, message_bytes=message
        )
    )
    assert {(item.rule, item.severity, item.flows, item.topic) for item in found} <= {
        ("record-sizes", "note", ("east->west",), None)
    }
    return [(item.subject, item.sentence, item.fix) for item in found]


def test_what_fits_is_not_told() -> None:
    assert told(SizeLimit("a", "east.a", MIB, MIB), SizeLimit("b", "east.b", MIB, 2 * MIB)) == []


def test_topics_with_the_same_numbers_are_one() -> None:
    limits = [SizeLimit(name, f"east.{name}", 10 * MIB, MIB) for name in ("a", "b", "c")]
    ((subject, sentence, fix),) = told(*limits)
    assert subject == "a" and "topic a (and 2 other topics so) of cluster east takes" in sentence
    assert "10,485,760" in sentence and "1,048,576" in sentence and "east.a" in sentence
    assert "10485760" in fix and "on_refused: park" in fix
    assert len(told(*limits, SizeLimit("d", "east.d", 3 * MIB, MIB))) == 2


def test_our_own_producer_has_limits_too() -> None:
    ((_, sentence, fix),) = told(SizeLimit("a", "east.a", 200_000_000, 200_000_000))
    assert (
        "100,000,000" in sentence
        and "message.max.bytes in the producer block of cluster west to 200000000" in fix
    )
    ((_, sentence, fix),) = told(SizeLimit("a", "east.a", 5_000, 5_000))
    assert (
        "1,000,000" in sentence
        and "5,000" in sentence
        and "batch.size in the producer block of cluster west" in fix
    )
    assert told(SizeLimit("a", "east.a", 5_000, 5_000), batch=4_000) == []


def test_a_codec_that_the_flow_has_to_take_is_compared_with_the_sources() -> None:
    """A flow that may choose takes a denser one when it needs to."""
    limits = [SizeLimit("a", "east.a", MIB, MIB, "zstd"), SizeLimit("b", "east.b", MIB, MIB)]

    def sentences(codec: str | None) -> list[str]:
        problems = size_problems(
            "f",
            ("east", "west"),
            limits,
            batch_bytes=MIB // 2,
            message_bytes=100 * MIB,
            codec=codec,
        )
        return [problem.sentence for problem in problems]

    assert sentences(None) == sentences("zstd") == []
    (sentence,) = sentences("lz4")
    assert "topic a of cluster east compresses by zstd" in sentence and "flow f by lz4" in sentence


def test_a_request_that_brokers_cut_off_is_told() -> None:
    """They say nothing to it."""
    limits = [SizeLimit("a", "east.a", 200_000_000, 200_000_000)]
    found = list(
        size_problems(
            "east->west",
            ("east", "west"),
            limits,
            batch_bytes=1_000_000,
            message_bytes=1_000_000_000,
            request_bytes=100 * MIB,
        )
    )
    ((sentence, fix),) = [(item.sentence, item.fix) for item in found]
    assert (
        "104,857,600 (socket.request.max.bytes)" in sentence
        and "of west to more than 200000000" in fix
    )
    assert not list(
        size_problems(
            "east->west",
            ("east", "west"),
            limits,
            batch_bytes=1_000_000,
            message_bytes=1_000_000_000,
            request_bytes=300 * MIB,
        )
    )
