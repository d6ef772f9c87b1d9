"""Metrics and health over HTTP, read by a strict reading of Prometheus' text format 0.0.4."""

import http.client
import itertools
import logging
import math
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import Patience, exit_code

import streamsvm
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.runtime import http as serve
from streamsvm.connectors.runtime.health import Health
from streamsvm.connectors.runtime.metrics import METRICS, Metrics
from streamsvm.connectors.runtime.status_server import StatusServer
from streamsvm.connectors.settings.sections import HttpSettings

# --- the text format --------------------------------------------------------------------------------------------------

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\n|\\")*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:{LABEL})(?:,{LABEL})*)\}})? (\S+)")
NUMBER = re.compile(r"[+-]?(\d+(\.\d+)?(e[+-]\d+)?)|[+-]Inf|NaN")
UNESCAPED = {r"\\": "\\", r"\n": "\n", r"\"": '"'}


class Family(NamedTuple):
    kind: str
    help: str
    samples: dict  # value by name and labels


def parse(exposition):
    """Families by name; anything against the format, or against what Prometheus takes for granted, is an error."""
    families, name = {}, None
    assert exposition == "" or exposition.endswith("\n")
    for line in exposition.split("\n")[:-1]:
        if line.startswith("# HELP "):
            name, text = re.fullmatch(rf"# HELP ({NAME}) ([^\\]+)", line).groups()
            assert name not in families, f"{name} comes in two pieces"
            families[name] = Family("", text, {})
        elif line.startswith("# TYPE "):
            typed, kind = re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge|histogram)", line).groups()
            assert typed == name
            assert not families[name].kind
            assert not families[name].samples
            families[name] = families[name]._replace(kind=kind)
        else:
            add_sample(families[name], name, line)
    for name, family in families.items():
        assert family.kind
        if family.kind == "histogram":
            check_histogram(name, family.samples)
    return families


def add_sample(family, name, line):
    sample, inside, *_, number = SAMPLE.fullmatch(line).groups()
    suffixes = {"histogram": ("_bucket", "_sum", "_count")}.get(family.kind, ("",))
    assert sample in [name + suffix for suffix in suffixes]
    pairs = [
        (label, re.sub(r"\\.", lambda m: UNESCAPED[m[0]], value)) for label, value in re.findall(LABEL, inside or "")
    ]
    assert len(dict(pairs)) == len(pairs), "a label twice"
    key = (sample, frozenset(pairs))
    assert key not in family.samples, "a sample twice"
    assert NUMBER.fullmatch(number)
    family.samples[key] = float(number)


def check_histogram(name, samples):
    buckets = {}
    for (sample, labels), value in samples.items():
        if sample == f"{name}_bucket":
            bound = dict(labels)["le"]
            buckets.setdefault(frozenset(labels - {("le", bound)}), []).append((float(bound), value))
    others = {labels for sample, labels in samples if sample != f"{name}_bucket"}
    assert buckets.keys() == others
    for labels, pairs in buckets.items():
        bounds, totals = zip(*pairs, strict=True)
        assert list(bounds) == sorted(set(bounds))
        assert bounds[-1] == math.inf
        assert list(totals) == sorted(totals)
        assert samples[f"{name}_count", labels] == totals[-1]
        assert (f"{name}_sum", labels) in samples


def value(metrics, name, **labels):
    sample = re.sub(r"_(bucket|sum|count)$", "", name)
    key = (name, frozenset((label, str(text)) for label, text in labels.items()))
    return parse(metrics.render())[sample].samples[key]


def labels_of(metric):
    return dict.fromkeys(metric.labels, "x")


# --- metrics ----------------------------------------------------------------------------------------------------------


def test_the_table():
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert re.fullmatch(r"streamsvm_[a-z_]+1?", metric.name)
        assert (metric.kind == "counter") == metric.name.endswith("_total")
        assert (metric.kind == "histogram") == bool(metric.buckets)
        assert list(metric.buckets) == sorted(set(metric.buckets))
        assert metric.help.endswith(".")
        assert not set(metric.help) & set("\\\n")


def test_every_metric_of_the_table_is_shown():
    metrics = Metrics()
    assert metrics.render() == ""
    for metric in METRICS:
        {"gauge": metrics.set, "counter": metrics.add, "histogram": metrics.observe}[metric.kind](
            metric.name, 1, **labels_of(metric)
        )
    families = parse(metrics.render())
    assert [(name, *family[:2]) for name, family in families.items()] == [metric[:3] for metric in METRICS]
    assert all(family.samples for family in families.values())


@pytest.mark.parametrize(
    "number", [0, 1, True, -2.5, 1e300, 1e-300, 2**70, np.float64(0.1), np.float32(0.5), np.int64(3)]
)
def test_numbers_arrive_exactly(number):
    metrics = Metrics()
    metrics.set("streamsvm_support_vectors", number, partition=0)
    assert value(metrics, "streamsvm_support_vectors", partition=0) == number


def test_what_is_no_number():
    metrics = Metrics()
    for partition, number in enumerate([math.nan, math.inf, -math.inf]):
        metrics.set("streamsvm_rolling_error", number, partition=partition)
    assert metrics.render().splitlines()[2:] == [
        'streamsvm_rolling_error{partition="0"} NaN',
        'streamsvm_rolling_error{partition="1"} +Inf',
        'streamsvm_rolling_error{partition="2"} -Inf',
    ]


@given(st.text(), st.text())
def test_labels_arrive_exactly(topic, partition):
    metrics = Metrics()
    metrics.set("streamsvm_lag_records", 7, topic=topic, partition=partition)
    metrics.set("streamsvm_lag_records", 8, partition=partition, topic=topic)  # the same, in another order
    assert value(metrics, "streamsvm_lag_records", topic=topic, partition=partition) == 8


def test_a_label_that_is_no_valid_text_does_not_spoil_the_rest():
    metrics = Metrics()
    metrics.set("streamsvm_model_age_seconds", 7, model="a\udc80")
    assert value(metrics, "streamsvm_model_age_seconds", model="a?") == 7
    metrics.drop(model="a\udc80")
    assert "{" not in metrics.render()


def test_counters_add_up():
    metrics = Metrics()
    metrics.add("streamsvm_bad_records_total", 0, reason="syntax")
    assert value(metrics, "streamsvm_bad_records_total", reason="syntax") == 0
    metrics.add("streamsvm_bad_records_total", 3, reason="syntax")
    metrics.add("streamsvm_bad_records_total", reason="syntax")
    metrics.add("streamsvm_bad_records_total", reason="schema")
    assert value(metrics, "streamsvm_bad_records_total", reason="syntax") == 4
    assert value(metrics, "streamsvm_bad_records_total", reason="schema") == 1


def test_a_gauge_may_be_a_function():
    metrics = Metrics()
    saved_at = time.monotonic() - 5
    metrics.set("streamsvm_checkpoint_age_seconds", lambda: time.monotonic() - saved_at, partition=0)
    assert 5 <= value(metrics, "streamsvm_checkpoint_age_seconds", partition=0) < 60


@given(st.lists(st.lists(st.floats(-1, 100) | st.sampled_from([0.001, 0.5, 30.0]))))
def test_histograms(batches):
    metrics = Metrics()
    name = "streamsvm_cut_seconds"
    (bounds,) = (metric.buckets for metric in METRICS if metric.name == name)
    for batch in batches:
        metrics.observe(name, batch)
    metrics.observe(name, 0.5)
    numbers = [*itertools.chain(*batches), 0.5]
    for bound in (*bounds, math.inf):
        le = repr(bound).replace("inf", "+Inf")
        assert value(metrics, f"{name}_bucket", le=le) == sum(number <= bound for number in numbers)
    assert value(metrics, f"{name}_sum") == pytest.approx(sum(numbers))
    assert value(metrics, f"{name}_count") == len(numbers)


def test_what_belongs_to_a_partition_can_be_dropped():
    metrics = Metrics()
    for partition in (3, 31):
        metrics.set("streamsvm_lag_records", 5, topic="events", partition=partition)
        metrics.set("streamsvm_checkpoint_age_seconds", lambda: 5, partition=partition)
        metrics.set("streamsvm_estimated_error", 0.5, partition=partition, kind="loo", bound="upper")
    metrics.add("streamsvm_labels_total", outcome="3")
    metrics.add("streamsvm_rebalances_total")
    metrics.drop(partition=3)
    text = metrics.render()
    parse(text)
    assert 'partition="3"' not in text
    assert text.count('partition="31"') == 3
    assert value(metrics, "streamsvm_labels_total", outcome=3) == 1
    assert value(metrics, "streamsvm_rebalances_total") == 1
    metrics.set("streamsvm_lag_records", 7, topic="events", partition=3)
    assert value(metrics, "streamsvm_lag_records", topic="events", partition=3) == 7


def test_a_wrong_name_is_an_error():
    metrics = Metrics()
    with pytest.raises(KeyError, match="streamsvm_lag"):
        metrics.set("streamsvm_lag", 1)
    for labels in {"topic": "events"}, {}, {"topic": "events", "partition": 1, "kind": "x"}:
        with pytest.raises(ValueError, match="label"):
            metrics.set("streamsvm_lag_records", 1, **labels)
    with pytest.raises(ValueError, match="label"):
        metrics.add("streamsvm_learned_total", 1, topic="events")
    with pytest.raises(ValueError, match="non-negative"):
        metrics.add("streamsvm_learned_total", -1)
    assert value(metrics, "streamsvm_learned_total") == 0


@pytest.mark.long
def test_rendering_while_the_loop_writes():
    """Series come and go while others read, with threads switched as often as can be: every reading is whole."""
    metrics, done, readings = Metrics(), threading.Event(), []

    def read():
        while not done.is_set():
            readings.append(metrics.render())

    reader, interval = threading.Thread(target=read), sys.getswitchinterval()
    metrics.add("streamsvm_records_total")
    sys.setswitchinterval(1e-6)
    try:
        reader.start()
        end = time.monotonic() + 1
        while time.monotonic() < end:
            metrics.add("streamsvm_records_total", 64)
            for partition in range(3):
                metrics.set("streamsvm_lag_records", 1.5, topic="events", partition=partition)
                metrics.observe("streamsvm_cut_seconds", [0.1, 0.2])
            for partition in range(3):
                metrics.drop(partition=partition)
        done.set()
        reader.join()
    finally:
        sys.setswitchinterval(interval)
    families = [parse(reading)["streamsvm_records_total"] for reading in readings]
    counts = [count for family in families for count in family.samples.values()]
    assert len(counts) > 10
    assert counts == sorted(counts)


# --- over HTTP --------------------------------------------------------------------------------------------------------


@pytest.fixture
def health():
    return Health()


@pytest.fixture
def metrics():
    return Metrics()


@pytest.fixture
def server(health, metrics):
    with StatusServer(health, metrics, **asdict(HttpSettings()), limit_seconds=30) as server:
        yield server


def ask(server, path, method="GET", body=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer, answer.read().decode()
    finally:
        connection.close()


def test_metrics_over_http(server, health, metrics):
    metrics.set("streamsvm_support_vectors", 12, partition=0)
    answer, text = ask(server, "/metrics?name=all")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = parse(text)
    assert {name for name in families if not name.startswith("process_")} == {
        "streamsvm_up",
        "streamsvm_ready",
        "streamsvm_build_info",
        "streamsvm_support_vectors",
    }
    (((_, build), number),) = families["streamsvm_build_info"].samples.items()
    assert number == 1
    assert value(metrics, "process_resident_memory_bytes") > 1 << 20
    assert dict(build)["version"] == streamsvm.__version__


def test_liveness(server, health, metrics, monkeypatch):
    assert ask(server, "/healthz")[0].status == 200
    assert value(metrics, "streamsvm_up") == 1
    now = time.monotonic()
    monkeypatch.setattr(
        "streamsvm.connectors.runtime.health.time", type("", (), {"monotonic": staticmethod(lambda: now + 31)})
    )
    answer, text = ask(server, "/healthz")
    assert (answer.status, text) == (503, "the loop has not beaten for 30 seconds\n")
    assert value(metrics, "streamsvm_up") == 0
    health.heartbeat.beat()
    assert ask(server, "/healthz")[0].status == 200


def test_a_long_phase_may_be_announced(health):
    heart = health.heartbeat
    assert heart.alive(1)
    assert not heart.alive(0)
    with heart.allow(600):
        assert heart.alive(0)
        with heart.allow(0):
            assert heart.alive(0)
        assert heart.alive(0)
    assert not heart.alive(0)
    assert heart.count == 4


def test_readiness(server, health, metrics):
    answer, text = ask(server, "/readyz")
    assert (answer.status, text) == (503, "starting\n")
    assert value(metrics, "streamsvm_ready") == 0
    health.unready = None
    answer, text = ask(server, "/readyz")
    assert (answer.status, text) == (200, "ready\n")
    assert value(metrics, "streamsvm_ready") == 1
    health.unready = "no broker at ü\udc80"
    answer, text = ask(server, "/readyz")
    assert (answer.status, text) == (503, "no broker at ü?\n")
    assert health.unready == "no broker at ü\udc80"


@pytest.mark.parametrize("path", ["/", "/metric", "/metrics/", "/../etc/passwd"])
def test_other_paths_are_not_found(server, path):
    assert ask(server, path)[0].status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"])
def test_other_methods_are_refused(server, method):
    answer, _ = ask(server, "/metrics", method, b"x" * 100)
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/readyz", "/nothing"])
def test_head_is_get_without_the_body(server, path):
    full, text = ask(server, path)
    answer, nothing = ask(server, path, "HEAD")
    assert (answer.status, nothing) == (full.status, "")
    assert full.headers["Content-Length"] == str(len(text))
    assert abs(int(answer.headers["Content-Length"]) - len(text)) <= 20 * (path == "/metrics")  # the process goes on


def test_a_silent_client_holds_nobody_up(server):
    with socket.create_connection(("127.0.0.1", server.port)):
        assert ask(server, "/healthz")[0].status == 200


def test_requests_leave_no_trace_in_the_log(server, capfd, caplog):
    ask(server, "/metrics")
    ask(server, "/nothing")
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"nonsense\r\n\r\n")
        assert b"400" in client.recv(1000)
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # hang up without a goodbye
        client.sendall(b"GET /metrics HTTP/1.0\r\n")
        time.sleep(0.1)
    time.sleep(0.1)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_a_mistake_is_logged_and_does_not_end_the_server(server, metrics, caplog):
    metrics.set("streamsvm_model_age_seconds", lambda: 1 / 0, model="newest")
    answer, text = ask(server, "/metrics")
    assert (answer.status, text) == (500, "the metrics failed: ZeroDivisionError\n")
    assert "ZeroDivisionError" in caplog.text
    assert ask(server, "/healthz")[0].status == 200


def test_the_port_is_free_again_afterwards(health, metrics, caplog):
    caplog.set_level(logging.INFO)
    with StatusServer(health, metrics, **asdict(HttpSettings())) as server:
        assert f"on 127.0.0.1, port {server.port}" in caplog.text
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1, port {server.port}: .*in use"):
            StatusServer(health, Metrics(), **asdict(HttpSettings(port=server.port)))
        ask(server, "/healthz")
    with StatusServer(health, Metrics(), **asdict(HttpSettings(port=server.port))) as again:
        assert ask(again, "/healthz")[0].status == 200


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_ipv6(health, metrics):
    try:
        server = StatusServer(health, metrics, **asdict(HttpSettings(host="::1")))
    except OSError:
        pytest.skip("no IPv6")
    with server, socket.create_connection(("::1", server.port)) as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert b" 200 " in client.recv(1000)


# --- clients that take too much ---------------------------------------------------------------------------------------


def connect(server, stack):
    return stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))


def is_closed(client):
    """Whether the server has hung up."""
    try:
        return client.recv(1000) == b""
    except ConnectionError:
        return True


def trickle(clients, seconds):
    """Send a byte now and then for so long, as if a request were under way."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for client in clients:
            with suppress(ConnectionError):
                client.send(b"x")
        time.sleep(0.05)


@pytest.mark.long
def test_slow_clients_keep_others_out_for_the_time_of_a_request_only(health, metrics, monkeypatch):
    monkeypatch.setattr(serve, "REQUEST_SECONDS", 2.5)
    with StatusServer(health, metrics, **asdict(HttpSettings(connections=5))) as server, ExitStack() as stack:
        clients = [connect(server, stack) for _ in range(5)]
        trickle(clients, 0.2)
        answer, text = ask(server, "/healthz")
        assert (answer.status, text) == (503, "too many connections\n")
        assert answer.headers["Retry-After"] == "1"
        trickle(clients, 3.0)
        assert all(map(is_closed, clients))
        assert ask(server, "/healthz")[0].status == 200
        assert ask(server, "/healthz")[0].status == 200


def test_a_client_that_takes_no_answer_is_left(health, metrics, monkeypatch):
    monkeypatch.setattr(serve, "REQUEST_SECONDS", 0.5)
    metrics.set(
        "streamsvm_lag_records", 1, topic="x" * (8 << 20), partition=0
    )  # more than the buffers of a connection hold
    with StatusServer(health, metrics, **asdict(HttpSettings(connections=1))) as server, ExitStack() as stack:
        client = connect(server, stack)
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert client.recv(4) == b"HTTP"
        patience = Patience(10)
        while ask(server, "/healthz")[0].status == 503:
            assert patience.lasts
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /" + b"x" * 33_000, b" 414 "),
        (b"GET /metrics HTTP/1.0\r\n" + b"A: b\r\n" * 99 + b"C: " + b"x" * 33_000, b" 431 "),
        (b"GET /metrics HTTP/1.0\r\n" + b"A: b\r\n" * 120 + b"\r\n", b" 431 "),
    ],
)
def test_long_headers_are_refused(request_, status, health, metrics, caplog):
    with StatusServer(health, metrics, **asdict(HttpSettings())) as server, ExitStack() as stack:
        client = connect(server, stack)
        client.sendall(request_)
        assert status in client.recv(1000)
        assert ask(server, "/metrics")[0].status == 200
    assert not caplog.records


TRAINER = """
import resource, sys
from pathlib import Path
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer import trainer as daemon, trainer
from streamsvm.connectors.runtime.process import stop_on_signals
settings = load(Path(sys.argv[1]), {}, [f"http.port={sys.argv[2]}"])
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
with stop_on_signals() as stop:
    trainer.run(settings, stop)
"""


@pytest.mark.long
def test_a_trainer_outlives_more_connections_than_it_has_file_descriptors(tmp_path):
    """And goes on: it opens a file for each checkpoint while they are there."""
    config = tmp_path / "app.toml"
    config.write_text('[model]\nscaling = "none"\n[daemon]\ncheckpoint_records = 1\n')
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with LocalLog(tmp_path / "log") as log, ExitStack() as stack:
        log.produce("events", b'{"id": 1, "x": {"a": 1.0}}')
        command = [sys.executable, "-c", TRAINER, str(config), str(port)]
        process = stack.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE))
        stack.callback(process.kill)
        wait_for_predictions(log, process, 1)
        with suppress(OSError):  # where nothing is accepted any more
            for _ in range(300):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=2))
                time.sleep(0.005)
        for number in range(2, 12):
            log.produce("events", b'{"id": %d, "x": {"a": 1.0}}' % number)
        wait_for_predictions(log, process, 11)
        process.send_signal(signal.SIGTERM)
        assert exit_code(process, 30) == 0


def wait_for_predictions(log, process, n):
    patience = Patience(60)
    while log.end_offsets("predictions").get(0, 0) < n:
        assert process.poll() is None, process.stderr.read().decode()
        assert patience.lasts
        time.sleep(0.05)


# --- names ------------------------------------------------------------------------------------------------------------


def status_for(server, host):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.putrequest("GET", "/metrics", skip_host=True)
        if host is not None:
            connection.putheader("Host", host)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("settings", "known", "unknown"),
    [
        (HttpSettings(), ["127.0.0.1:9100", "localhost", "LOCALHOST:1", "[::1]:9100", None], ["evil.example", "", "["]),
        (HttpSettings(names=("trainer",)), ["trainer:9100", "Trainer", "127.0.0.1"], ["trainer.evil.example"]),
        (HttpSettings(host="0.0.0.0"), ["10.0.0.7:9100", "trainer.default.svc:9100", "any.example"], []),  # noqa: S104
        (HttpSettings(host="0.0.0.0", names=("trainer",)), ["10.0.0.7", "trainer:9100"], ["evil.example"]),  # noqa: S104
    ],
)
def test_who_may_call_it_what(settings, known, unknown, health, metrics):
    """A foreign page may point a name of its own at this machine, and would then read the metrics as its own."""
    with StatusServer(health, metrics, **asdict(settings)) as server:
        assert [status_for(server, host) for host in known] == [200] * len(known)
        assert [status_for(server, host) for host in unknown] == [403] * len(unknown)
