"""The group of verbs. A verb's module is imported when it is used or listed, nothing else is."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

from quire.cli.exit_codes import INTERRUPTED, print_error

_SENTENCE: Final = 1_000  # characters, more than any has
VERBS: Final = {
    "archive": "quire.cli.verbs.archive:archive",
    "bench": "quire.cli.verbs.bench:bench",
    "check-proof": "quire.cli.verbs.check_proof:check_proof",
    "completion": "quire.cli.verbs.completion:completion",
    "compress-dictionary": "quire.cli.verbs.compress_dictionary:compress_dictionary",
    "convert": "quire.cli.verbs.convert:convert",
    "copy": "quire.cli.verbs.copy:copy",
    "diff": "quire.cli.verbs.diff:diff",
    "drain": "quire.cli.verbs.drain:drain",
    "dump": "quire.cli.verbs.dump:dump",
    "explain": "quire.cli.verbs.explain:explain",
    "groups": "quire.cli.verbs.groups:groups",
    "handover": "quire.cli.verbs.handover:handover",
    "history": "quire.cli.verbs.history:history",
    "jitter": "quire.cli.verbs.jitter:jitter",
    "merge": "quire.cli.verbs.merge:merge",
    "metrics": "quire.cli.verbs.metrics:metrics",
    "pipeline": "quire.cli.verbs.pipeline:pipeline",
    "pretouch": "quire.cli.verbs.pretouch:pretouch",
    "promote": "quire.cli.verbs.promote:promote",
    "prove": "quire.cli.verbs.prove:prove",
    "prune": "quire.cli.verbs.prune:prune",
    "publish": "quire.cli.verbs.publish:publish",
    "read": "quire.cli.verbs.read:read",
    "record": "quire.cli.verbs.record:record",
    "refresh": "quire.cli.verbs.refresh:refresh",
    "removable": "quire.cli.verbs.removable:removable",
    "repair": "quire.cli.verbs.repair:repair",
    "replay": "quire.cli.verbs.replay:replay",
    "replicate": "quire.cli.verbs.replicate:replicate",
    "rewrap": "quire.cli.verbs.rewrap:rewrap",
    "roll-cycles": "quire.cli.verbs.roll_cycles:roll_cycles",
    "salvage": "quire.cli.verbs.salvage:salvage",
    "seal": "quire.cli.verbs.seal:seal",
    "serve": "quire.cli.verbs.serve:serve",
    "split": "quire.cli.verbs.split:split",
    "stat": "quire.cli.verbs.stat:stat",
    "tail": "quire.cli.verbs.tail:tail",
    "tailers": "quire.cli.verbs.tailers:tailers",
    "time-index": "quire.cli.verbs.time_index:time_index",
    "token": "quire.cli.verbs.token:token",
    "top": "quire.cli.verbs.top:top",
    "unlock": "quire.cli.verbs.unlock:unlock",
    "verify": "quire.cli.verbs.verify:verify",
    "write": "quire.cli.verbs.write:write",
}


# Those that read or append messages: encrypted ones need a key.
_NEEDS_KEY: Final = {
    *("archive", "compress-dictionary", "convert", "diff", "dump", "explain", "groups", "history"),
    *("merge", "prune", "publish", "read", "record", "replay", "salvage", "split", "tail"),
    *("tailers", "time-index", "top", "write"),
}


# What other tools call a verb.
_OTHER_WORDS: Final = {
    **dict.fromkeys(("append", "produce", "put", "send"), "write"),
    **dict.fromkeys(("cat", "consume", "get", "show"), "read"),
    **dict.fromkeys(("info", "list", "ls", "status"), "stat"),
    **dict.fromkeys(("check", "fsck", "validate"), "verify"),
    **dict.fromkeys(("fix", "recover"), "repair"),
    "follow": "tail",
    "server": "serve",
}
TAKES_ADDRESSES: Final = frozenset({"groups", "read", "stat", "tail", "tailers", "top", "write"})
"""Those whose PATH may be a quire:// address: each has the options of its server."""


class WholeSummaries(click.Group):
    """A group whose help shows the first sentence of each command in full."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each command, or as many as its sentence needs."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, command.get_short_help_str(_SENTENCE))
            for name, command in commands
            if command is not None and not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class LazyGroup(WholeSummaries):
    """A group whose commands are looked up in ``VERBS``: ``module:attribute`` by verb."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in alphabetical order."""
        del ctx
        return sorted(VERBS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb of a command line, or say which one may be meant."""
        name = args[0]
        if name not in VERBS and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command '{name}'.{_suggestion(name)}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a verb, or None when there is none of this name."""
        del ctx
        place = VERBS.get(cmd_name)
        if place is None:
            return None
        module, _, attribute = place.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        if cmd_name in _NEEDS_KEY and not any(it.name == "key_file" for it in command.params):
            command.params.extend((_key_file_option(), _allow_plain_option()))
        if cmd_name in TAKES_ADDRESSES and not any(it.name == "token" for it in command.params):
            from quire.cli.remote_options import remote_options

            command.params.extend(remote_options())
        return command


def _suggestion(name: str) -> str:
    from difflib import get_close_matches

    likely = _OTHER_WORDS.get(name) or next(iter(get_close_matches(name, VERBS, n=1)), None)
    return "" if likely is None else f" Did you mean '{likely}'?"


def _key_file_option() -> click.Option:
    return click.Option(
        ["--key-file"],
        type=click.Path(),
        is_eager=True,  # before --allow-plain
        expose_value=False,
        callback=_use_key,
        help="The key of an encrypted queue: 32 bytes, raw, in hexadecimal or in base64; or a key"
        " ring in TOML.",
    )


def _use_key(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        from quire.sealed.key_ring import KeyRing, use_in_process

        use_in_process(KeyRing.from_file(value))


def _allow_plain_option() -> click.Option:
    return click.Option(
        ["--allow-plain"],
        is_flag=True,
        expose_value=False,
        callback=_allow_plain,
        help="With --key-file, also read messages that are not encrypted, such as those of Java.",
    )


def _allow_plain(_ctx: click.Context, _parameter: click.Parameter, value: object) -> None:
    if value:
        from quire.sealed.key_ring import allow_plain_in_process, default_ring

        if default_ring() is None:
            raise click.UsageError("--allow-plain is for encrypted queues: give --key-file, too")
        allow_plain_in_process()


def _print_version(ctx: click.Context, _parameter: click.Parameter, value: object) -> None:
    """Print the version; the native module is imported only for it."""
    if value and not ctx.resilient_parsing:
        from quire._native import VERSION

        click.echo(f"quire {VERSION}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def quire() -> None:
    """Work with persisted low-latency queues, the files of Chronicle Queue 5."""


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; errors go to stderr."""
    from quire.sealed.key_ring import of_command

    try:
        with of_command():
            code = quire.main(arguments, prog_name="quire", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        print_error(f"{error.format_message()}{_hint(error)}")
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _hint(error: click.ClickException) -> str:
    """Return where to read on after a wrong use."""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f" (see: {error.ctx.command_path} --help)"
    return ""
