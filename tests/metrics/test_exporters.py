"""What Prometheus and OpenTelemetry get, and that the dashboard asks for nothing else."""

from __future__ import annotations

import json
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import quire
from paths import ROOT
from queues import exit_code, fork
from quire._common import replication_file
from quire._common.replication_file import Standing
from quire._native import ReplicaStates
from quire.formats.adapters import numbering_of
from quire.formats.detection import Format
from quire.metrics.opentelemetry import observe
from quire.metrics.prometheus import Collector
from quire.metrics.queue_state import StateReader

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def busy(path: Path) -> Any:  # noqa: ANN401 - an iterator of queues
    with quire.open(path, metrics=True, buffer_mode="async") as queue:
        quire.prune(path, max_cycles=1)
        with quire.open(path, metrics=True) as other:
            other.appender().write_many([b"12", b"34"])
        with queue.tailer("risk") as tailer:
            tailer.read_bytes()
        with quire.open(path) as other, other.group("billing").consumer() as consumer:
            consumer.read_many(2)[0].ack()
        replication_file.write(path, Standing("0" * 32, 7, "source"))
        queue._note_acknowledged(queue.first_index or 0)  # pyright: ignore[reportPrivateUsage]
        replicas = ReplicaStates.open_or_create(path)
        replicas.set_member(replicas.slot_of("b", "127.0.0.1:1"), True)  # noqa: FBT003
        yield queue


def scraped(collector: Collector) -> Samples:
    registry = CollectorRegistry()
    registry.register(collector)
    text = generate_latest(registry).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_prometheus_gets_every_number(busy: quire.JournalQueue) -> None:
    found = scraped(Collector({"orders": busy}))
    queue = ("queue", "orders")
    expected = {
        ("quire_messages_appended_total", (queue,)): 2,
        ("quire_bytes_appended_total", (queue,)): 4,
        ("quire_messages_read_total", (queue,)): 1,
        ("quire_bytes_read_total", (queue,)): 2,
        ("quire_rolls_total", (queue,)): 1,
        ("quire_tailer_lag_messages", (queue, ("tailer", "risk"))): 1,
        ("quire_group_lag_messages", (("group", "billing"), queue)): 1,
        ("quire_redeliveries_messages_total", (queue,)): 0,
        ("quire_dead_letters_messages_total", (queue,)): 0,
        ("quire_cycles_removed_total", (queue,)): 0,
        ("quire_bytes_freed_total", (queue,)): 0,
        ("quire_replication_role", (queue, ("role", "source"))): 1,
        ("quire_replication_role", (queue, ("role", "sink"))): 0,
        ("quire_replication_epoch", (queue,)): 7,
        ("quire_replication_acknowledged_index", (queue,)): busy.first_index,
        ("quire_replication_lag_messages", (queue,)): 1,
        ("quire_replication_in_sync", (queue, ("replica", "b"))): 1,
        ("quire_replication_replica_lag_messages", (queue, ("replica", "b"))): 2,
        ("quire_ring_pending_messages", (queue,)): 0,
        ("quire_ring_stalls_total", (queue,)): 0,
        ("quire_append_latency_seconds_count", (queue,)): 1,
        ("quire_append_latency_seconds_bucket", (("le", "+Inf"), queue)): 1,
        ("quire_read_latency_seconds_count", (queue,)): 1,
        ("quire_lock_wait_seconds_count", (queue,)): 0,
    }
    assert expected.items() <= found.items()
    latency = busy.metrics().append_latency
    assert found["quire_append_latency_seconds_sum", (queue,)] == latency.sum_ns / 1e9
    buckets = [
        value
        for (name, labels), value in found.items()
        if name == "quire_append_latency_seconds_bucket" and queue in labels
    ]
    assert buckets == sorted(buckets)


def test_queues_are_named_by_their_paths(busy: quire.JournalQueue, path: Path) -> None:
    for given in (busy, path, str(path)):
        labels = dict(scraped(Collector([given])).keys())
        assert labels["quire_rolls_total"] == (("queue", str(path)),)


def test_a_queue_that_is_made_later_is_found_then(path: Path) -> None:
    collector = Collector([path])
    assert not any("messages" in name for name, _ in scraped(collector))
    with quire.open(path, metrics=True) as queue:
        queue.appender().write_bytes(b"x")
        assert scraped(collector)["quire_messages_appended_total", (("queue", str(path)),)] == 1


def test_a_path_that_is_not_utf_8_is_shown_with_escapes(path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(path) + b"\xff"))
    for each in (path, odd):
        with quire.open(each, metrics=True) as queue:
            queue.appender().write_bytes(b"x")
    shown = (str(path), f"{path}\\udcff")
    found = scraped(Collector([path, odd]))
    assert [found["quire_up", (("queue", name),)] for name in shown] == [1, 1]

    reader = InMemoryMetricReader()
    observe([path, odd], MeterProvider([reader]).get_meter("test"))
    data: Any = reader.get_metrics_data()
    points = [
        point
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
    ]
    assert {point.attributes["queue"] for point in points} == set(shown)


def test_opentelemetry_gets_every_number(busy: quire.JournalQueue) -> None:
    reader = InMemoryMetricReader()
    observe({"orders": busy}, MeterProvider([reader]).get_meter("test"))
    data: Any = reader.get_metrics_data()
    found = {
        (metric.name, *sorted(f"{key}={it}" for key, it in point.attributes.items())): point.value
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
    }
    latency = busy.metrics().append_latency
    expected = {
        ("quire.messages_appended", "queue=orders"): 2,
        ("quire.bytes_appended", "queue=orders"): 4,
        ("quire.tailer_lag", "queue=orders", "tailer=risk"): 1,
        ("quire.group_lag", "group=billing", "queue=orders"): 1,
        ("quire.ring_stalls", "queue=orders"): 0,
        ("quire.append_latency", "percent=100", "queue=orders"): latency.max_ns / 1e9,
    }
    assert expected.items() <= found.items()
    assert ("quire.disk_free", "queue=orders") in found


def observed(queue: quire.JournalQueue) -> set[str]:
    reader = InMemoryMetricReader()
    observe({"orders": queue}, MeterProvider([reader]).get_meter("test"))
    data: Any = reader.get_metrics_data()
    metrics = data.resource_metrics[0].scope_metrics[0].metrics
    return {metric.name for metric in metrics if metric.data.data_points}


def test_a_damaged_ring_leaves_the_other_metrics(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with quire.open(path, metrics=True) as queue:
        queue.appender().write_bytes(b"x")
        queue.tailer("risk").close()
        whole = {name for name, _ in scraped(Collector([queue]))}
        assert not any("ring" in name for name in whole)
        (path / "async.ring").write_bytes(b"not a ring" * 1000)
        collector = Collector({"orders": queue})
        for _ in range(2):
            assert {name for name, _ in scraped(collector)} == whole
        (line,) = caplog.messages
        assert line.startswith("metrics of a queue cannot be read: queue=orders metric=ring error=")
        assert str(path / "async.ring") in line
        assert {"quire.messages_appended", "quire.disk_used"} <= observed(queue)

        (path / "async.ring").unlink()
        assert {name for name, _ in scraped(collector)} == whole
        (path / "async.ring").write_bytes(b"not a ring" * 1000)
        caplog.clear()
        scraped(collector)
        assert len(caplog.messages) == 1, "damaged once more, and said once more"


def test_queues_that_cannot_be_read_leave_the_others(
    busy: quire.JournalQueue, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    closed = quire.open(tmp_path / "closed")
    closed.close()
    damaged = tmp_path / "damaged"
    quire.open(damaged, metrics=True).close()
    (damaged / "metrics.quire").write_bytes(b"not metrics" * 1000)
    with quire.open(tmp_path / "other") as other:
        Path(os.fsdecode(os.fsencode(other.path) + b"/\xff.qgroup")).write_bytes(b"x" * 100)
        collector = Collector({"closed": closed, "damaged": damaged, "busy": busy, "other": other})
        scraped(collector)
        found = scraped(collector)
    names = {dict(labels)["queue"] for name, labels in found if name != "quire_up"}
    assert names == {"busy", "other"}
    up = {dict(labels)["queue"]: it for (name, labels), it in found.items() if name == "quire_up"}
    assert up == {"closed": 0, "damaged": 0, "busy": 1, "other": 1}
    assert [line.split(" error=")[0] for line in caplog.messages] == [
        "metrics of a queue cannot be read: queue=closed metric=all",
        "metrics of a queue cannot be read: queue=damaged metric=all",
    ]


def test_a_damaged_replication_leaves_the_other_metrics(
    busy: quire.JournalQueue, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (path / replication_file.NAME).write_text("{}")

    found = scraped(Collector({"orders": busy}))

    assert not any("replication" in name for name, _ in found)
    assert found["quire_messages_appended_total", (("queue", "orders"),)] == 2
    assert "metric=replication error=replication.json does not say" in caplog.text


def test_a_sink_has_a_role_and_no_lag(path: Path) -> None:
    with quire.open(path) as queue:
        queue.appender().write_bytes(b"x")
        replication_file.write(path, Standing("0" * 32, 2, "sink"))
        found = scraped(Collector({"copy": queue}))

    assert found["quire_replication_role", (("queue", "copy"), ("role", "sink"))] == 1
    assert ("quire_replication_lag_messages", (("queue", "copy"),)) not in found


def test_a_group_that_is_a_link_leaves_the_other_metrics(
    busy: quire.JournalQueue, path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    side_file = path / "billing.qgroup"
    side_file.symlink_to(side_file.rename(tmp_path / "elsewhere"))
    found = {name for name, _ in scraped(Collector({"orders": busy}))}
    assert "quire_group_lag_messages" not in found
    assert {"quire_tailer_lag_messages", "quire_ring_pending_messages"} <= found
    assert any("metric=group_lag" in line for line in caplog.messages)


def test_the_dashboard_asks_for_metrics_that_there_are(busy: quire.JournalQueue) -> None:
    dashboard = json.loads(files("quire.metrics").joinpath("grafana.json").read_text("utf-8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    names = {name for expression in asked for name in re.findall(r"\bquire_\w+", expression)}
    exported = {name for name, _ in scraped(Collector({"orders": busy}))}
    assert names <= exported
    shown = {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in names}
    assert shown == {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in exported}
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    assert len({(place["x"], place["y"]) for place in places}) == len(places)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(places)


FORMATS = ("chronicle", "vanilla", "quick-queue")


@pytest.mark.parametrize("form", FORMATS)
def test_a_queue_whose_writer_counts_nothing_says_where_it_ends(path: Path, form: Format) -> None:
    collector = Collector({"orders": path})
    assert scraped(collector) == {("quire_up", (("queue", "orders"),)): 0}
    with quire.open(path, format=form) as queue, queue.appender() as appender:
        assert states(collector).get("quire_end_index", 0) == 0
        assert "quire_last_message_age_seconds" not in states(collector)
        last = appender.write_bytes(b"x")
        found = states(collector)
        assert found["quire_up"] == 1
        # A float has 53 bits: the index of a Vanilla Chronicle needs more.
        assert found["quire_end_index"] == pytest.approx(last + numbering_of(queue).step, rel=1e-15)
        assert found["quire_end_sequence"] == 1
        assert 0 <= found["quire_last_message_age_seconds"] < 3600
        assert (found["quire_locks_held"], found["quire_locks_dead"]) == (0, 0)
        assert 0 < found["quire_disk_used_bytes"] <= found["quire_disk_size_bytes"]
    assert not any(re.search("appended|latency|last_prune", name) for name in found)


@pytest.mark.parametrize("form", ["chronicle", "vanilla"])
def test_the_lag_of_a_named_tailer_is_exported(path: Path, form: Format) -> None:
    with cast("quire.Queue", quire.open(path, format=form)) as queue:
        queue.appender().write_many([b"x"] * 5)
        queue.tailer("fresh").close()
        with queue.tailer("risk") as tailer:
            tailer.read_many(2)
        found = scraped(Collector({"orders": path}))
    lags = {dict(labels)["tailer"]: it for (name, labels), it in found.items() if "lag" in name}
    assert lags == {"fresh": 5, "risk": 3}


def states(collector: Collector) -> dict[str, float]:
    return {name: value for (name, _), value in scraped(collector).items()}


def test_the_age_is_that_of_the_last_message_and_not_of_the_file(path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_bytes(b"x")
        (file,) = path.glob("*.cq4")
        os.utime(file, (0, 0))
        reader = StateReader(queue)
        ages = [reader.read().last_message_age_s]
        appender.write_bytes(b"y")
        ages.append(reader.read().last_message_age_s)
        os.utime(file, (0, 0))
        ages.append(reader.read().last_message_age_s)
    assert [age is not None and age > 1e9 for age in ages] == [True, False, False]


def test_a_lock_that_is_held_is_seen(path: Path) -> None:
    with quire.open(path) as queue, queue.appender() as appender:
        collector = Collector({"orders": path})
        with appender.writing_document():
            found = states(collector)
            assert (found["quire_locks_held"], found["quire_locks_dead"]) == (1, 0)
        assert states(collector)["quire_locks_held"] == 0


def test_a_queue_that_took_the_place_of_another_is_opened(path: Path, tmp_path: Path) -> None:
    collector = Collector({"orders": path})
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_many([b"x"] * 3)
    before = states(collector)["quire_end_index"]
    path.rename(tmp_path / "away")
    assert states(collector) == {"quire_up": 0}
    quire.open(path).close()
    found = states(collector)
    assert before > 0
    assert (found["quire_up"], found["quire_end_index"]) == (1, 0)


def test_a_queue_that_was_restored_in_its_directory_is_opened(path: Path) -> None:
    collector = Collector({"orders": path})
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_many([b"x"] * 3)
    assert states(collector)["quire_end_sequence"] == 3
    for file in path.iterdir():
        file.unlink()
    assert states(collector) == {"quire_up": 0}
    with quire.open(path) as queue, queue.appender() as appender:
        appender.write_many([b"x"] * 2)
    found = states(collector)
    assert (found["quire_up"], found["quire_end_sequence"]) == (1, 2)


def test_another_queue_of_the_same_name_is_watched(path: Path) -> None:
    other = path.with_name("other")
    for place, count in ((path, 3), (other, 2)):
        with quire.open(place) as queue, queue.appender() as appender:
            appender.write_many([b"x"] * count)
    collector = Collector({"orders": path})
    assert states(collector)["quire_end_sequence"] == 3
    collector.watch({"orders": other})
    assert states(collector)["quire_end_sequence"] == 2
    with quire.open(path) as queue:
        collector.watch({"orders": queue})
        assert states(collector)["quire_end_sequence"] == 3


def test_a_forked_child_opens_the_queue_of_a_path_again(path: Path) -> None:
    with quire.open(path) as queue:
        queue.appender().write_text("x")
    collector = Collector({"orders": path})
    assert states(collector)["quire_end_sequence"] == 1

    def child() -> None:
        assert states(collector)["quire_end_sequence"] == 1
        path.rename(path.with_name("away"))
        assert states(collector) == {"quire_up": 0}

    assert exit_code(fork(child)) == 0
    assert states(collector) == {"quire_up": 0}


def test_an_encrypted_queue_needs_no_key(path: Path) -> None:
    with quire.open(path, key=b"k" * 32) as queue:
        queue.appender().write_text("x")
    found = states(Collector({"orders": path}))
    assert (found["quire_up"], found["quire_end_sequence"]) == (1, 1)


def test_a_relative_path_stays_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quire.open(path).close()
    monkeypatch.chdir(path.parent)
    collector = Collector({"orders": path.name})
    monkeypatch.chdir("/")
    assert states(collector)["quire_up"] == 1


def test_a_damaged_queue_is_down_and_the_others_are_up(
    path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for place in (path, tmp_path / "other"):
        with quire.open(place) as queue, queue.appender() as appender:
            appender.write_bytes(b"x")
    (path / "metadata.cq4t").write_bytes(b"spoiled!" * 512)
    collector = Collector({"a": path, "b": tmp_path / "other"})
    for _ in range(2):
        found = scraped(collector)
        assert found["quire_up", (("queue", "a"),)] == 0
        assert found["quire_up", (("queue", "b"),)] == 1
    assert len(caplog.messages) == 1


def test_the_alerts_ask_for_metrics_that_there_are(busy: quire.JournalQueue) -> None:
    rules = yaml.safe_load((ROOT / "docs/prometheus-alerts.yaml").read_text("utf-8"))
    (group,) = rules["groups"]
    exported = {name for name, _ in scraped(Collector({"orders": busy}))}
    labels = {key for _, labels in scraped(Collector({"orders": busy})) for key, _ in labels}
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"])
    for rule in group["rules"]:
        names = {*re.findall(r"\bquire_\w+", rule["expr"])}
        assert names, rule
        assert names <= exported, rule
        summary = rule["annotations"]["summary"]
        assert {*re.findall(r"\$labels\.(\w+)", summary)} <= labels, rule
        assert rule["labels"]["severity"] in {"critical", "warning"}
