"""A shard whose target refuses a record for its size tries once with the densest codec, unless one
was asked for."""

from mirrorlake.produce.codecs import DENSEST, Codecs


def row(shard: int, partition: int, reason: str | None) -> dict[str, object]:
    records = [] if reason is None else [{"reason": reason}]
    return {"shard": shard, "partition": partition, "refused_records": records}


LARGE, OTHER, WHOLE = "MSG_SIZE_TOO_LARGE", "INVALID_TIMESTAMP", None


def test_each_shard_tries_once_more_and_what_is_refused_again_is() -> None:
    codecs = Codecs({"linger.ms": 1})
    refused = [
        row(0, 0, LARGE),
        row(0, 2, LARGE),
        row(0, 4, OTHER),
        row(1, 1, OTHER),
        row(1, 3, WHOLE),
    ]
    assert (codecs.codec_of(0), codecs.settings(0)) == ("lz4", {"linger.ms": 1})
    assert codecs.final(refused) == refused[2:]
    assert (codecs.codec_of(0), codecs.settings(0)) == (
        DENSEST,
        {"linger.ms": 1, "compression.type": DENSEST},
    )
    assert codecs.codec_of(1) == "lz4" and codecs.final(refused) == refused
    assert codecs.final([row(1, 1, LARGE)]) == [] and codecs.codec_of(1) == DENSEST


def test_a_codec_that_was_asked_for_is_kept() -> None:
    for name in ("compression.type", "compression.codec"):
        codecs = Codecs({name: "gzip"})
        assert (
            codecs.final([row(0, 0, LARGE)]) == [row(0, 0, LARGE)] and codecs.codec_of(0) == "gzip"
        )
