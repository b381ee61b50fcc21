"""The group of verbs. A verb's module is imported when it is used or listed, nothing else is."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

VERBS: Final = {
    "demo": "quire.cli.demo:demo",
}


class LazyGroup(click.Group):
    """A group whose commands are looked up in ``VERBS``: ``module:attribute`` by verb."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in alphabetical order."""
        del ctx
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a verb, or None when there is none of this name."""
        del ctx
        place = VERBS.get(cmd_name)
        if place is None:
            return None
        module, _, attribute = place.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


def _print_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """Print the version; the native module is imported only for it."""
    if wanted and not ctx.resilient_parsing:
        from quire._native import VERSION

        click.echo(f"quire {VERSION}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def quire() -> None:
    """Persisted low-latency queues in the files of Chronicle Queue 5."""


def run(arguments: list[str]) -> int:
    """Run one command line; usage errors and a stop by the user are told on stderr."""
    try:
        code = quire.main(arguments, prog_name="quire", standalone_mode=False)
    except click.Abort:
        click.echo("quire: interrupted", err=True)
        return 1
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return code if isinstance(code, int) else 0
