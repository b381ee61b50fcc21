"""The plots of docs/performance/measurements.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench import live_tables, scaling, summary, tables
from bench.harness import Result, adapter
from bench.targets import PERCENTILES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OURS, _JAVA, _OTHERS = "#2a6f97", "#c1666b", "#9aa5b1"
_REPLICATED = {
    "replicated": _OURS,
    "replicated_java": _JAVA,
    "replicated_redis": "#2ca02c",
    "replicated_nats": "#9467bd",
}


def draw(results: dict[str, Result], directory: Path) -> dict[str, list[Path]]:
    """Draw what was measured; return the files of each section."""
    import matplotlib as mpl

    mpl.use("Agg")
    directory.mkdir(parents=True, exist_ok=True)
    made: dict[str, list[Path]] = {}
    if "append" in results:
        made["Appending, against Java"] = [_rates(results, "append", directory)]
    if "tail" in results:
        made["Reading, against Java"] = [_rates(results, "tail", directory)]
    if "latency" in results:
        made["Latency between two processes"] = [_latency(results, directory)]
    if "contention" in results:
        made["Several writers at once"] = [_contention(results, directory)]
    if "scaling" in results:
        made["How it grows"] = [_scaling(results, directory)]
    if "messages" in results:
        made["Objects and calls as messages"] = [_messages(results, directory)]
    if "claims" in results:
        made["Rates, sizes, writers, services, a broker"] = [
            _claimed(results, kind, directory) for kind in ("rates", "sizes")
        ]
    if "replication" in results:
        made["Replication"] = [_replication(results, directory)]
    if "peers" in results:
        made["Beside other Python libraries"] = [_peers(results, directory)]
    return made


def _rates(results: dict[str, Result], part: str, directory: Path) -> Path:
    """One panel for each place and size; bars are medians, whiskers reach from min to max."""
    import matplotlib.pyplot as plt

    found = summary.scenarios(results, part)
    columns = len({one["size"] for one in found})
    rows = -(-len(found) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(11, 1.2 + 2.2 * rows), squeeze=False)
    for scenario, axis in zip(found, axes.flat, strict=False):
        keys = sorted(summary.operations(scenario), key=tables.place_of, reverse=True)
        _bars(axis, scenario, keys)
        axis.set_title(f"{scenario['size']} bytes, {scenario['file_system']}", fontsize=10)
    return _save(figure, directory / f"{part}.png")


def _bars(axis: Axes, scenario: Result, keys: list[str]) -> None:
    spreads = [summary.nanos(scenario, key) for key in keys]
    rates = [1e3 / one.median for one in spreads]
    errors = [
        [1e3 / one.median - 1e3 / one.greatest for one in spreads],
        [1e3 / one.least - 1e3 / one.median for one in spreads],
    ]
    names = [tables.full_name(key) for key in keys]
    colours = [_colour(key) for key in keys]
    axis.barh(names, rates, color=colours, xerr=errors, ecolor="#444444", capsize=2)
    has_cpu_time = all(run["cpu_nanos"] for run in scenario["rounds"][0]["runs"].values())
    if has_cpu_time:
        by_cpu = [1e3 / summary.nanos(scenario, key, summary.CPU_TIME).median for key in keys]
        axis.plot(by_cpu, names, "D", color="#222222", markersize=4, linestyle="none")
    mark = summary.mark(scenario)
    diamond = "; diamond: by CPU time" if has_cpu_time else ""
    axis.set_xlabel(f"million messages/s{diamond}{mark}", fontsize=8)
    axis.tick_params(labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)


def _latency(results: dict[str, Result], directory: Path) -> Path:
    import matplotlib.pyplot as plt

    found = summary.scenarios(results, "latency")
    figure, axes = plt.subplots(1, len(found), figsize=(13, 3.4), squeeze=False, sharey=True)
    names = list(PERCENTILES)
    for scenario, axis in zip(found, axes.flat, strict=True):
        for key in summary.operations(scenario):
            spreads = [summary.percentile(scenario, key, "begin", name) for name in names]
            medians = [one.median for one in spreads]
            label = adapter(key.split(".")[0]).NAME
            axis.plot(names, medians, marker="o", color=_colour(key), label=label)
        axis.set_yscale("log")
        axis.set_title(f"{scenario['rate']:,}/s, {scenario['file_system']}", fontsize=10)
        axis.set_ylabel("microseconds", fontsize=8)
        axis.legend(fontsize=8, frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    return _save(figure, directory / "latency.png")


def _contention(results: dict[str, Result], directory: Path) -> Path:
    """Draw rates and fairness over the number of writers."""
    import matplotlib.pyplot as plt

    found = summary.scenarios(results, "contention")
    figure, (rates, fairness) = plt.subplots(1, 2, figsize=(11, 3.4))
    writers = [str(one["writers"]) for one in found]
    for key in summary.operations(found[0]):
        dashes = "--" if key == "chronicle.writeBytes" else "-"
        per_second = [1e3 / summary.nanos(one, key).median for one in found]
        jain = [summary.values(one, key, lambda run: run["fairness"]).median for one in found]
        name, colour = tables.full_name(key), _colour(key)
        rates.plot(writers, per_second, dashes, marker="o", color=colour, label=name)
        fairness.plot(writers, jain, dashes, marker="o", color=colour, label=name)
    rates.set_ylabel("million messages/s together", fontsize=8)
    fairness.set_ylabel("fairness (Jain)", fontsize=8)
    for axis in (rates, fairness):
        axis.set_ylim(bottom=0)
        axis.set_xlabel("writers", fontsize=8)
        axis.legend(fontsize=8, frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    return _save(figure, directory / "contention.png")


def _scaling(results: dict[str, Result], directory: Path) -> Path:
    """Draw the time of each operation over what grows, a panel for each kind of growth."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(13, 6.6))
    for (kind, shown), axis in zip(scaling.KINDS.items(), axes.flat, strict=True):
        found = [one for one in summary.scenarios(results, "scaling") if one["kind"] == kind]
        for key in summary.operations(found[0]) if found else ():
            spreads = [summary.nanos(one, key) for one in found]
            medians = [one.median for one in spreads]
            errors = [
                [one.median - one.least for one in spreads],
                [one.greatest - one.median for one in spreads],
            ]
            label = scaling.NAMES[key.partition(".")[2]].replace("`", "")
            amounts = [one["amount"] for one in found]
            axis.errorbar(amounts, medians, yerr=errors, marker="o", capsize=2, label=label)
        axis.set_xscale("log", base=2 if kind in ("tailers", "members", "writers") else 10)
        axis.set_yscale("log")
        axis.set_xlabel(shown, fontsize=8)
        axis.set_ylabel("ns each", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.legend(fontsize=7, frameon=False)
        axis.spines[["top", "right"]].set_visible(False)
    return _save(figure, directory / "growth.png")


def _messages(results: dict[str, Result], directory: Path) -> Path:
    import matplotlib.pyplot as plt

    found = summary.scenarios(results, "messages")
    heights = [1 + len(summary.operations(one)) for one in found]
    figure, axes = plt.subplots(
        len(found), 1, figsize=(9, 0.45 * sum(heights)), squeeze=False, height_ratios=heights
    )
    for scenario, axis in zip(found, axes.flat, strict=True):
        keys = sorted(summary.operations(scenario), key=tables.place_of, reverse=True)
        _bars(axis, scenario, keys)
        of = f" of {scenario['holds']}" if "holds" in scenario else ""
        axis.set_title(f"{scenario['kind']}{of}, {scenario['file_system']}", fontsize=10)
    return _save(figure, directory / "messages.png")


def _replication(results: dict[str, Result], directory: Path) -> Path:
    """Draw latency against rate, a panel for each percentile."""
    import matplotlib.pyplot as plt

    found = [one for one in summary.scenarios(results, "replication") if one["kind"] == "latency"]
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.4), sharey=True)
    rates = [f"{one['rate']:,}" for one in found]
    for name, axis in zip(("p50", "p99"), axes, strict=True):
        for key in sorted(summary.operations(found[0])):
            medians = [summary.percentile(one, key, "begin", name).median for one in found]
            name_of = key.split(".")[0]
            colour = _REPLICATED.get(name_of, _OTHERS)
            axis.plot(rates, medians, marker="o", color=colour, label=adapter(name_of).NAME)
        axis.set_yscale("log")
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("messages a second", fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("microseconds", fontsize=8)
    axes[1].legend(fontsize=8, frameon=False)
    return _save(figure, directory / "replication.png")


def _claimed(results: dict[str, Result], kind: str, directory: Path) -> Path:
    """Draw latency against rate or message size, a panel for each percentile."""
    import matplotlib.pyplot as plt

    found = [one for one in summary.scenarios(results, "claims") if one["kind"] == kind]
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.4), sharey=True)
    by = "rate" if kind == "rates" else "size"
    places = [f"{one[by]:,}" for one in found]
    for name, axis in zip(("p50", "p99", "p99.9"), axes, strict=True):
        for key in summary.operations(found[0]):
            medians = [summary.percentile(one, key, "begin", name).median for one in found]
            dashes = "--" if key == "quire.batches" else "-"
            label = live_tables.reader_of(key)
            axis.plot(places, medians, dashes, marker="o", color=_colour(key), label=label)
        axis.set_yscale("log")
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("messages a second" if by == "rate" else "bytes", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.tick_params("x", labelrotation=30)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("microseconds", fontsize=8)
    axes[2].legend(fontsize=8, frameon=False)
    return _save(figure, directory / f"latency-{kind}.png")


def _peers(results: dict[str, Result], directory: Path) -> Path:
    import matplotlib.pyplot as plt

    found = summary.scenarios(results, "peers")
    figure, axes = plt.subplots(1, len(found), figsize=(13, 3.2), squeeze=False)
    for scenario, axis in zip(found, axes.flat, strict=True):
        keys = sorted(
            summary.operations(scenario),
            key=lambda key: summary.nanos(scenario, key).median,
            reverse=True,
        )
        _bars(axis, scenario, keys)
        axis.set_xscale("log")
        axis.set_xlabel(axis.get_xlabel() + ", logarithmic", fontsize=8)
        axis.set_title(f"{scenario['kind']}, {scenario['file_system']}", fontsize=10)
    return _save(figure, directory / "peers.png")


def _colour(key: str) -> str:
    return {"quire": _OURS, "chronicle": _JAVA}.get(key.split(".", maxsplit=1)[0], _OTHERS)


def _save(figure: object, path: Path) -> Path:
    from matplotlib.figure import Figure

    assert isinstance(figure, Figure)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    return path
