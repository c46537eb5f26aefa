"""The addresses that a run answers at."""

import socket
import threading
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mirrorlake.errors import InputError
from mirrorlake.metrics.facts import Facts, FlowInForce
from mirrorlake.metrics.server import serving
from mirrorlake.metrics.standing import Standing
from tests.support.metrics_facts import FACTS

LOCAL = "127.0.0.1:0"


def get(port: int, path: str, accept: str = "text/plain", host: str = "127.0.0.1") -> str:
    with urlopen(Request(f"http://{host}:{port}{path}", headers={"Accept": accept})) as answer:
        text: str = answer.read().decode()
        return text


def refusal(port: int, path: str) -> tuple[int, str]:
    with pytest.raises(HTTPError) as refused:
        get(port, path)
    return refused.value.code, refused.value.read().decode()


def test_prometheus_reads_it() -> None:
    with serving(LOCAL, lambda: FACTS, 1000) as port:
        text = get(port, "/metrics")
        other = get(port, "/metrics", "application/openmetrics-text; version=1.0.0")
    read = {family.name: family for family in text_string_to_metric_families(text)}
    samples = {
        (sample.name, sample.labels.get("partition")): sample.value
        for sample in read["mirrorlake_produced_records"].samples
    }
    assert samples == {
        ("mirrorlake_produced_records_total", "0"): 3.0,
        ("mirrorlake_produced_records_total", "1"): 4.0,
    }
    buckets = {
        sample.labels["le"]: sample.value
        for sample in read["mirrorlake_replication_latency_seconds"].samples
        if sample.name.endswith("_bucket")
    }
    assert (buckets["0.1"], buckets["0.25"], buckets["+Inf"]) == (0.0, 1.0, 1.0)
    assert "process_resident_memory_bytes" in read
    assert other.endswith("# EOF\n")


def test_probes() -> None:
    waiting = Facts(in_force=(FlowInForce("east->west"),))
    with serving(LOCAL, lambda: waiting, 1000) as port:
        assert get(port, "/healthz") == "ok\n"
        assert refusal(port, "/readyz") == (503, "flow east->west has not produced anything yet\n")
        assert refusal(port, "/")[0] == 404
    with serving(LOCAL, lambda: FACTS, 1000) as port:
        assert get(port, "/readyz") == "ready\n"


def test_a_process_that_starts_lives_and_is_not_ready() -> None:
    standing = Standing(lambda: ("starting Spark", 3.0))
    with serving(LOCAL, standing.facts, 1000) as port:
        assert get(port, "/healthz") == "ok\n"
        assert refusal(port, "/readyz") == (503, "starting: starting Spark\n")
        assert 'mirrorlake_process_memory_bytes{process="driver"}' in get(port, "/metrics")


def test_what_fails_in_a_scrape_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def facts() -> Facts:
        raise ValueError("nothing is known")

    with serving(LOCAL, facts, 1000) as port:
        assert refusal(port, "/metrics") == (500, "the log says why\n")
        assert get(port, "/healthz") == "ok\n", "the next request is answered"
    assert "nothing is known" in caplog.text


def test_a_client_that_does_not_read_holds_up_nobody() -> None:
    with (
        serving(LOCAL, lambda: FACTS, 1000) as port,
        socket.create_connection(("127.0.0.1", port)),  # and sends nothing
    ):
        assert get(port, "/healthz") == "ok\n"
    assert "metrics" not in [thread.name for thread in threading.enumerate()]


def test_a_client_that_sends_nothing_writes_nothing_to_stderr(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mirrorlake.metrics.server._Handler.timeout", 0.05)
    with (
        serving(LOCAL, lambda: FACTS, 1000) as port,
        socket.create_connection(("127.0.0.1", port)) as client,
    ):
        client.settimeout(10)
        assert client.recv(1) == b"", "the server has ended it"
    assert capfd.readouterr().err == ""


def test_an_address_in_use_is_one_sentence() -> None:
    with (
        serving(LOCAL, Facts, 1000) as port,
        pytest.raises(InputError) as refused,
        serving(f"127.0.0.1:{port}", Facts, 1000),
    ):
        pass
    assert refused.value.exit_code == 2
    assert str(refused.value).startswith(f"metrics cannot be served at 127.0.0.1:{port} (Address ")


@pytest.mark.parametrize("address", ["9404", "localhost", "localhost:http", "localhost:70000"])
def test_what_is_no_address(address: str) -> None:
    words = "is no address to serve metrics at; write HOST:PORT"
    with pytest.raises(InputError, match=words), serving(address, Facts, 1000):
        pass


def test_ipv6() -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        with serving("[::1]:0", Facts, 1000) as port:
            assert get(port, "/healthz", host="[::1]") == "ok\n"
    except InputError as error:
        assert "annot assign" in str(error)
