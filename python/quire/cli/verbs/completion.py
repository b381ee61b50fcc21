"""``quire completion``: tab completion for a shell, printed or installed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

_LINE: Final = {
    "bash": 'eval "$(_QUIRE_COMPLETE=bash_source quire)"',
    "zsh": 'eval "$(_QUIRE_COMPLETE=zsh_source quire)"',
    "fish": "_QUIRE_COMPLETE=fish_source quire | source",
}
_FILE: Final = {
    "bash": "~/.bashrc",
    "zsh": "~/.zshrc",
    "fish": "~/.config/fish/completions/quire.fish",
}


@click.command()
@click.argument("shell", type=click.Choice([*_LINE]), required=False)
@click.option("--install", is_flag=True, help="Add it to the shell's start-up file.")
def completion(shell: str | None, *, install: bool) -> None:
    """
    Print or install tab completion for bash, zsh or fish.

    Without a shell, that of $SHELL is used. Installing again changes nothing.

    \b
    Examples:
      quire completion --install
      quire completion zsh > ~/.zfunc/_quire
    """  # noqa: D301 - click reads the backspace
    shell = shell or _own_shell()
    if install:
        click.echo(_installed(shell))
    else:
        click.echo(_script(shell))


def _own_shell() -> str:
    """
    Return the shell of this user.

    Raises:
        click.UsageError: The user's shell is not one of the supported shells.

    """
    name = Path(os.environ.get("SHELL", "")).name
    if name not in _LINE:
        raise click.UsageError(f"unknown shell: SHELL={name!r} (name one of {', '.join(_LINE)})")
    return name


def _script(shell: str) -> str:
    from click.shell_completion import get_completion_class

    from quire.cli.verb_group import quire

    found = get_completion_class(shell)
    if found is None:
        raise click.ClickException(f"no completion for this shell: shell={shell}")
    return found(quire, {}, "quire", "_QUIRE_COMPLETE").source()


def _installed(shell: str) -> str:
    """Add the line to the start-up file, unless it is there; return what was done."""
    path = Path(_FILE[shell]).expanduser()
    line = _LINE[shell].encode()
    found = path.read_bytes() if path.exists() else b""  # in whichever encoding it is
    if line in found:
        return f"present={path}"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(b"" if not found or found.endswith(b"\n") else b"\n")
        file.write(line + b"\n")
    return f"installed={path} (it takes effect in new shells)"
