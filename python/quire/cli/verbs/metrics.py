"""``quire metrics``: the metrics of queues for Prometheus."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

import quire
from quire.cli.exit_codes import OK, error_text, print_error
from quire.cli.parameters import PATH, address_like, value_errors_as_usage
from quire.cli.reading.sources import sources_of
from quire.cli.signals import exit_on_sigterm
from quire.recording.addresses import Address, binding, show_address

if TYPE_CHECKING:
    from quire.metrics.prometheus import Collector

_LOOK_S: Final = 10.0  # between looks for queues that were made or removed


@click.command()
@click.argument("paths", metavar="PATH...", type=PATH, nargs=-1, required=True)
@click.option(
    "--listen",
    type=address_like("127.0.0.1:9464"),
    metavar="ADDRESS",
    help="Serve the metrics over HTTP at HOST:PORT or PORT, until interrupted.",
)
def metrics(paths: tuple[Path, ...], *, listen: Address | None) -> int:
    """
    Print the metrics of queues for Prometheus, or serve them.

    PATH is a queue of any format or a directory of queues, which is searched for new ones every 10
    seconds. Writers, Java's too, need no option: the end of each queue, the time of its last
    message, its locks and its disk space are read from its files. Counts and latencies are included
    if a writer counts them (metrics=True). Queues are named by their paths, which begin as PATH
    does. It writes nothing and takes no lock.

    \b
    Examples:
      quire metrics /var/queues
      quire metrics /var/queues orders --listen 9464
      quire metrics /var/queues > /var/lib/node_exporter/quire.prom
    """  # noqa: D301 - click reads the backspace
    if find_spec("prometheus_client") is None:
        raise click.ClickException("metrics need prometheus-client: pip install 'quire[metrics]'")
    from prometheus_client import CollectorRegistry, generate_latest, start_http_server

    from quire.metrics.prometheus import Collector

    with value_errors_as_usage():
        collector = Collector(_queues(paths))
    registry = CollectorRegistry()
    registry.register(collector)
    if listen is None:
        click.echo(generate_latest(registry), nl=False)
        return OK
    host, port = listen
    with binding(listen):
        server, _ = start_http_server(port, addr=host, registry=registry)
    try:
        print_error(f"listening: http://{show_address(server.server_address)}/metrics")
        with exit_on_sigterm(OK):
            _look_for_queues(collector, paths)
    finally:
        server.shutdown()
        server.server_close()
    return OK


def _look_for_queues(collector: Collector, paths: tuple[Path, ...]) -> None:
    """Look for queues again and again, until interrupted; while that fails, those known stay."""
    failure = ""
    while True:
        time.sleep(_LOOK_S)
        try:
            collector.watch(_queues(paths))
        except (quire.QuireError, OSError, click.ClickException) as error:
            if failure != (failure := error_text(error)):
                print_error(f"cannot look for queues: {failure}")
        else:
            failure = ""


def _queues(paths: tuple[Path, ...]) -> dict[str, Path]:
    """Return the queues at these paths, by their names."""
    return {
        str(path / source.name): source.path
        for path in paths
        for source in sources_of(path)
        if isinstance(source.path, Path)
    }
