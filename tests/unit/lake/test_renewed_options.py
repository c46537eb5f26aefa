"""Options that are lent for a time are renewed before it is over, by whom they are asked for."""

import logging
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from mirrorlake.errors import LakeError
from mirrorlake.lake.renewed_options import LEFT_SECONDS, Lent, NotLent, RenewedOptions

HOUR = 3_600.0


class Lender:
    """Lends a number, for an hour from when it is asked; or does not answer."""

    def __init__(self) -> None:
        self.now, self.asked, self.answers = 1_000.0, 0, True

    def lend(self) -> Lent:
        self.asked += 1
        if not self.answers:
            raise NotLent("the workspace does not answer")
        return Lent({"key": f"s3cret-{self.asked}"}, self.now + HOUR)

    def options(self) -> RenewedOptions:
        return RenewedOptions({"region": "eu", "key": "old"}, self.lend, lambda: self.now)


def test_they_are_asked_for_once_and_again_before_they_are_over() -> None:
    lender = Lender()
    options = lender.options()
    assert options.now() == options.now() == {"region": "eu", "key": "s3cret-1"}
    lender.now += HOUR - LEFT_SECONDS
    assert options.now()["key"] == "s3cret-1"
    lender.now += 1
    assert options.now()["key"] == "s3cret-2" and lender.asked == 2


def test_those_that_are_never_good_for_long_are_not_asked_for_at_each_use() -> None:
    lender = Lender()
    lend = lender.lend
    options = RenewedOptions({}, lambda: replace(lend(), until=lender.now + 60), lambda: lender.now)
    for _ in range(20):
        options.now()
    assert lender.asked == 2


def test_those_in_hand_do_while_no_one_answers_and_no_longer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lender = Lender()
    options = lender.options()
    options.now()
    lender.answers = False
    lender.now += HOUR - LEFT_SECONDS + 1
    with caplog.at_level(logging.WARNING):
        assert [options.now()["key"] for _ in range(3)] == ["s3cret-1"] * 3
    assert lender.asked == 2 and "does not answer" in caplog.text, "not at each use"
    assert "s3cret" not in caplog.text + repr(options)
    lender.now += LEFT_SECONDS
    with pytest.raises(LakeError, match="does not answer"):
        options.now()
    lender.answers = True
    assert options.now()["key"] == "s3cret-4"


def test_no_thread_waits_for_another_that_asks_while_those_in_hand_are_good() -> None:
    lender, asking, answer = Lender(), threading.Event(), threading.Event()
    options = lender.options()
    options.now()
    lender.now += HOUR - LEFT_SECONDS + 1
    lend = lender.lend

    def slow() -> Lent:
        asking.set()
        assert answer.wait(30)
        return lend()

    options._ask = slow
    with ThreadPoolExecutor(1) as pool:
        renewed = pool.submit(options.now)
        assert asking.wait(30)
        assert options.now()["key"] == "s3cret-1"
        answer.set()
        assert renewed.result()["key"] == options.now()["key"] == "s3cret-2"


def test_a_task_gets_what_is_good_now() -> None:
    assert pickle.loads(pickle.dumps(Lender().options())) == {"region": "eu", "key": "s3cret-1"}


def test_many_threads_ask_once() -> None:
    lender = Lender()
    options = lender.options()
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda _: options.now()["key"], range(50)))
    assert set(keys) == {"s3cret-1"}
