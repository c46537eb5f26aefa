"""How large batches are that keep to a rate."""

import pytest

from mirrorlake.offsets.partition_ranges import StagedRange
from mirrorlake.resend.note import Resend, ResentTopic
from mirrorlake.resend.sender import BATCH_RECORDS, batch_size


@pytest.mark.parametrize(
    ("staged", "picked", "rate", "size"),
    [
        (1_000, 1_000, 100, 100),
        (1_000_000, 1_000, 100, 100_000),
        (10**9, 10, 100, BATCH_RECORDS),
        (10, 0, 5, 50),
    ],
)
def test_a_batch_holds_what_may_be_sent_in_a_second(
    staged: int, picked: int, rate: int, size: int
) -> None:
    ranges = (StagedRange("east", "t", 0, 0, 0, staged - 1, picked),)
    resend = Resend(
        "replay",
        "1",
        source="east",
        target="west",
        target_id="id",
        request={},
        parts=(ResentTopic("t", "u", ranges),),
    )
    assert batch_size(rate, resend) == size
