"""``quire replicate``: keep copies of a queue on other machines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from quire.cli.exit_codes import OK
from quire.cli.parameters import PATH, address_like, value_errors_as_usage
from quire.cli.until_signal import run_until_signal
from quire.cli.verb_group import WholeSummaries
from quire.errors import NotAQueueError, OptionsError
from quire.formats.detection import CHRONICLE, VANILLA, Format, format_of, refuse_others
from quire.recording.addresses import Address

if TYPE_CHECKING:
    from quire.replication.tls import Tls


def _tls_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that say how a connection is protected."""
    options = (
        click.option("--certificate", type=PATH, help="This side's certificate, a PEM file."),
        click.option("--key", type=PATH, help="Its private key, a PEM file."),
        click.option(
            "--authority",
            type=PATH,
            help="The authority that signs the peers' certificates, a PEM file.",
        ),
        click.option(
            "--insecure",
            is_flag=True,
            help="Allow connections beyond this machine without certificates.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


_ETCD_S = 3.0
"""How long etcd may take to answer, whatever the lease: a signal waits for it, too."""

_ONCE_THE_SOURCE = "once it is the source, "
_busy_option = click.option(
    "--busy",
    is_flag=True,
    help="Use a thread that never sleeps for each connection: lower latency, one core each.",
)


def _drop_after_option(when: str = "") -> Callable[[Callable[..., int]], Callable[..., int]]:
    text = "stop waiting for a sink that was disconnected this long; never by default."
    kind = click.FloatRange(min=0, min_open=True)
    return click.option(
        "--drop-after", type=kind, metavar="SECONDS", help=_sentence(f"{when}{text}")
    )


def _compress_option(when: str = "") -> Callable[[Callable[..., int]], Callable[..., int]]:
    text = "compress what is sent to sinks that support it."
    return click.option("--compress", is_flag=True, help=_sentence(f"{when}{text}"))


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _tls_of(certificate: Path | None, key: Path | None, authority: Path | None) -> Tls | None:
    from quire.replication.tls import Tls

    if certificate is None and key is None and authority is None:
        return None
    if certificate is None or key is None or authority is None:
        raise click.UsageError("--certificate, --key and --authority go together")
    return Tls(certificate, key, authority)


@contextmanager
def _options_as_usage() -> Generator[None]:
    """Have options that do not go together count as wrong use."""
    try:
        with value_errors_as_usage():
            yield
    except OptionsError as error:
        raise click.UsageError(str(error)) from None


@click.group(cls=WholeSummaries)
def replicate() -> None:
    """Keep copies of a queue on other machines."""


@replicate.command()
@click.argument("path", type=PATH)
@click.option(
    "--listen",
    type=address_like("127.0.0.1:7001"),
    metavar="ADDRESS",
    default="127.0.0.1:0",
    help="Where sinks connect: HOST:PORT or PORT; port 0 takes a free one.",
)
@click.option(
    "--to",
    type=address_like("127.0.0.1:7001"),
    metavar="ADDRESS",
    help="Connect to the sink that listens there, instead of listening.",
)
@_drop_after_option()
@_busy_option
@_compress_option()
@_tls_options
def source(  # noqa: PLR0913 - its options
    path: Path,
    *,
    listen: Address,
    to: Address | None,
    drop_after: float | None,
    busy: bool,
    compress: bool,
    certificate: Path | None,
    key: Path | None,
    authority: Path | None,
    insecure: bool,
) -> int:
    """
    Send the messages of a queue to each sink that connects, until a signal.

    Prints `listening ADDRESS`. Any process may append to the queue meanwhile. Addresses beyond this
    machine require certificates. The source ends with exit code 1 when a sink has seen a later
    epoch: another replica was promoted, and this queue refuses appends. After `quire handover` it
    continues as a sink of the new source, if the new source serves.

    A Vanilla Chronicle is sent by the protocol of Java's sinks, without certificates and handover.

    \b
    Examples:
      quire replicate source orders --listen 127.0.0.1:7001
      quire replicate source orders --to 127.0.0.1:7001
      quire replicate source orders --listen 10.0.0.1:7001 \\
          --certificate a.pem --key a.key --authority ca.pem
    """  # noqa: D301 - click reads the backspace
    from quire.cli.replicas import Member, VanillaMember

    tls = _tls_of(certificate, key, authority)
    _check_format(path, "replicated", CHRONICLE, VANILLA)
    with _options_as_usage():
        if format_of(str(path)) == VANILLA:
            _refuse(
                certificates=tls,
                drop_after=drop_after,
                busy=busy or None,
                compress=compress or None,
            )
            vanilla = VanillaMember(path, insecure=insecure)
            return run_until_signal(lambda: vanilla.serve(to or listen, connects=to is not None))
        member = Member(
            path,
            listen,
            tls,
            insecure=insecure,
            to=to,
            drop_after_s=drop_after,
            busy=busy,
            compress=compress,
        )
        return run_until_signal(member.serve)


@replicate.command()
@click.argument("path", type=PATH)
@click.option(
    "--from",
    "origin",
    type=address_like("127.0.0.1:7001"),
    metavar="ADDRESS",
    help="The source's address: HOST:PORT or PORT.",
)
@click.option(
    "--accept",
    type=address_like("127.0.0.1:7001"),
    metavar="ADDRESS",
    help="Listen here for the source to connect, instead of --from.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice([CHRONICLE, VANILLA]),
    help="The format of a copy that does not exist yet.  [default: chronicle]",
)
@click.option("--name", metavar="NAME", help="The name of this sink at the source.")
@click.option(
    "--acknowledge",
    type=click.Choice(["stored", "synced"]),
    help="Acknowledge a message once it survives a killed process (stored) or a power cut (synced)."
    "  [default: stored; for vanilla, nothing]",
)
@click.option(
    "--repair",
    is_flag=True,
    help="If the copy differs from the source, move its end aside, and continue.",
)
@click.option(
    "--listen",
    type=address_like("127.0.0.1:7001"),
    metavar="ADDRESS",
    help="The address at which the sink serves after a handover: HOST:PORT or PORT.",
)
@_drop_after_option(_ONCE_THE_SOURCE)
@_busy_option
@_compress_option(_ONCE_THE_SOURCE)
@_tls_options
def sink(  # noqa: PLR0913 - its options
    path: Path,
    *,
    origin: Address | None,
    accept: Address | None,
    style: str | None,
    name: str | None,
    acknowledge: Literal["stored", "synced"] | None,
    repair: bool,
    listen: Address | None,
    drop_after: float | None,
    busy: bool,
    compress: bool,
    certificate: Path | None,
    key: Path | None,
    authority: Path | None,
    insecure: bool,
) -> int:
    """
    Keep a copy of a source's queue, until a signal.

    PATH is created if it does not exist. After a lost connection the sink reconnects and continues
    where the copy ends. No other process can append to the copy until it is promoted, even while no
    sink runs. If the copy and the source differ, the sink changes nothing and ends with exit code
    1; with --repair it moves the files with different messages into PATH/aside, reports this, and
    continues. After `quire handover` it continues as the source if --listen is given; otherwise it
    ends.

    A copy of a Vanilla Chronicle uses the cycle options with which it was created, as the protocol
    does not transmit the source's; Java's sources do not accept acknowledgements.


    \b
    Examples:
      quire replicate sink copy --from 127.0.0.1:7001
      quire replicate sink copy --accept 127.0.0.1:7001 --format vanilla
      quire replicate sink copy --from 10.0.0.1:7001 --acknowledge synced \\
          --certificate b.pem --key b.key --authority ca.pem
    """  # noqa: D301 - click reads the backspace
    from quire.cli.replicas import Member, VanillaMember

    tls = _tls_of(certificate, key, authority)
    if (address := origin or accept) is None or (origin and accept):
        raise click.UsageError("give either --from or --accept")
    listens = accept is not None
    with _options_as_usage():
        if _format_of_copy(path, style) == VANILLA:
            _refuse(
                certificates=tls,
                name=name,
                listen=listen,
                repair=repair or None,
                drop_after=drop_after,
                busy=busy or None,
                compress=compress or None,
            )
            vanilla = VanillaMember(path, insecure=insecure)
            return run_until_signal(lambda: vanilla.follow(address, acknowledge, listens=listens))
        level: Literal["stored", "synced"] = acknowledge or "stored"
        member = Member(
            path,
            listen,
            tls,
            insecure=insecure,
            name=name,
            acknowledge=level,
            repair=repair,
            drop_after_s=drop_after,
            busy=busy,
            compress=compress,
        )
        return run_until_signal(lambda: member.follow(address, listens=listens))


def _check_format(path: Path, done: str, *known: Format) -> None:
    """Report a queue whose format cannot be replicated this way as a usage error."""
    try:
        refuse_others(str(path), done, *known)
    except NotAQueueError as error:
        raise click.UsageError(str(error)) from None


def _format_of_copy(path: Path, style: str | None) -> str:
    _check_format(path, "replicated", CHRONICLE, VANILLA)
    found = format_of(str(path)) or style or CHRONICLE
    if style is not None and found != style:
        raise click.UsageError(f"the queue has another format: path={path} format={found}")
    return found


def _refuse(**given: object) -> None:
    """Refuse options that the protocol of Vanilla Chronicles has no place for."""
    for name, value in given.items():
        if value is not None:
            text = "not supported by the protocol of Vanilla Chronicles"
            raise click.UsageError(f"{text}: {name}")


@replicate.command()
@click.argument("path", type=PATH)
@click.option(
    "--listen",
    type=address_like("10.0.0.1:7001"),
    metavar="ADDRESS",
    required=True,
    help="The address at which the other nodes reach this one: HOST:PORT or PORT.",
)
@click.option(
    "--etcd", metavar="URL", required=True, help="The address of etcd: http://HOST:PORT or https."
)
@click.option(
    "--name", metavar="NAME", required=True, help="This node's name, unique among the nodes."
)
@click.option(
    "--lease",
    type=click.IntRange(2, 3600),
    default=10,
    show_default=True,
    metavar="SECONDS",
    help="How long a source that lost etcd continues; a failover takes two seconds longer.",
)
@click.option(
    "--queue", metavar="IDENTITY", help="The queue that a new node copies, if etcd has several."
)
@click.option(
    "--drop-after",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Remove a sink from the in-sync set after it was disconnected this long."
    "  [default: never]",
)
@click.option(
    "--acknowledge",
    type=click.Choice(["stored", "synced"]),
    default="stored",
    show_default=True,
    help="Acknowledge messages that survive a killed process, or a power cut.",
)
@_compress_option()
@_tls_options
def node(  # noqa: PLR0913 - its options
    path: Path,
    *,
    listen: Address,
    etcd: str,
    name: str,
    lease: int,
    queue: str | None,
    drop_after: float | None,
    acknowledge: Literal["stored", "synced"],
    compress: bool,
    certificate: Path | None,
    key: Path | None,
    authority: Path | None,
    insecure: bool,
) -> int:
    """
    Be the source of a queue or one of its sinks, as etcd decides, until a signal.

    The first node has the queue at PATH; the others create a copy there. The node that holds the
    lease in etcd is the source. When that node is lost, a node that has every acknowledged message
    becomes the source. A node without the lease refuses appends. Each node prints a line when its
    role changes: `source`, `sink` or `waiting`.

    \b
    Examples:
      quire replicate node orders --listen 10.0.0.1:7001 --name a \\
          --etcd http://10.0.0.9:2379 --certificate a.pem --key a.key --authority ca.pem
    """  # noqa: D301 - click reads the backspace
    from quire.replication import Etcd, Node

    _check_format(path, "kept by nodes", CHRONICLE)
    tls = _tls_of(certificate, key, authority)

    def say(line: str) -> None:
        click.echo(line)
        sys.stdout.flush()

    async def work() -> None:
        register = Etcd(etcd, timeout_s=min(lease / 4, _ETCD_S), tls=tls)
        member = Node(
            path,
            register,
            name=name,
            host=listen[0],
            port=listen[1],
            lease_s=lease,
            queue=queue,
            acknowledge=acknowledge,
            drop_after_s=drop_after,
            tls=tls,
            insecure=insecure,
            compress=compress,
            on_change=say,
        )
        await member.run_forever()

    with _options_as_usage():
        return run_until_signal(work)


@replicate.command()
@click.argument("path", type=PATH)
@click.option(
    "--from",
    "origin",
    type=address_like("127.0.0.1:7003"),
    metavar="ADDRESS",
    help="On the source's machine: the replica's address, HOST:PORT or PORT.",
)
@click.option(
    "--listen",
    type=address_like("127.0.0.1:7003"),
    metavar="ADDRESS",
    help="On the replica's machine: the address for the source; port 0 picks a free port.",
)
@click.option(
    "--repair",
    is_flag=True,
    help="With --from: if PATH differs from the replica, move its end aside, and continue.",
)
@_tls_options
def refill(  # noqa: PLR0913 - its options
    path: Path,
    *,
    origin: Address | None,
    listen: Address | None,
    repair: bool,
    certificate: Path | None,
    key: Path | None,
    authority: Path | None,
    insecure: bool,
) -> int:
    """
    Restore a source that lost its disk from a replica.

    Run it on both machines: with --listen on the replica's, with --from on the source's. The
    source's PATH need not exist, or may hold a part or an old copy of the queue. It gets the
    messages it lacks; then a new epoch begins, both commands end, and the source accepts appends.
    Nothing is overwritten: if messages differ, the command ends with exit code 1. Choose the
    replica that has the most messages: sinks that have more refuse to follow the source. If either
    side is stopped or killed, run it again.

    \b
    Examples:
      quire replicate refill copy --listen 127.0.0.1:7003
      quire replicate refill orders --from 127.0.0.1:7003
    """  # noqa: D301 - click reads the backspace
    from quire.cli.replicas import Refill

    tls = _tls_of(certificate, key, authority)
    if repair and origin is None:
        raise click.UsageError("--repair goes with --from")
    _check_format(path, "refilled", CHRONICLE)
    work = Refill(path, tls, insecure=insecure)
    with _options_as_usage():
        if listen is not None and origin is None:
            return run_until_signal(lambda: work.give(listen))
        if origin is not None and listen is None:
            return run_until_signal(lambda: work.take(origin, repair=repair))
    raise click.UsageError("give either --from or --listen")


@replicate.command()
@click.argument("path", type=PATH)
@click.argument("name")
def forget(path: Path, name: str) -> int:
    """
    Remove a sink from the in-sync set of a source's queue.

    Appends with wait="all" no longer wait for it, retention keeps nothing for it, and promoting it
    loses the messages that it has not acknowledged. If it connects again and catches up, it is a
    member again. If there is no member of this name, the exit code is 1. The set of nodes is in
    etcd: run the command where the node is the source, which first removes the sink there.

    \b
    Examples:
      quire replicate forget orders backup
    """  # noqa: D301 - click reads the backspace
    from quire.replication import forget as forget_member

    forget_member(path, name)
    click.echo(f"forgot {name}")
    return OK
