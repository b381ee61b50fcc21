"""Calls of an interface from values without types, as ``quire write --interface`` makes them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Self

import click

import quire
from quire.cli.parameters import methods_of_interface


class TypedCalls:
    """
    Appends calls through a method writer, with arguments of the types that it declares.

    Each call passes a queue in a temporary directory: a method reader there makes the arguments.

    Args:
        appender: Where calls are appended to.
        interface: Declares the methods.
        method: The one that is called.

    Raises:
        click.UsageError: The option does not name an interface, or the interface has no such
            method.

    """

    def __init__(
        self, appender: quire.JournalAppender, interface: Callable[..., Any], method: str
    ) -> None:
        """Look for the method."""
        methods = methods_of_interface(interface)
        if method not in methods:
            raise click.UsageError(
                f"the interface has no such method: method={method} known={', '.join(methods)}"
            )
        self._writer = _by_name(appender.method_writer(interface), interface)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Make the temporary queue."""
        directory = self._stack.enter_context(tempfile.TemporaryDirectory())
        queue = self._stack.enter_context(
            quire.open(
                directory,
                block_bytes=2**16,
                buffer_mode="none",
                integrity=False,
                read_after_replica_acknowledged=False,
            )
        )
        self._appender = self._stack.enter_context(queue.appender())
        tailer = self._stack.enter_context(queue.tailer())
        self._reader = tailer.method_reader(self._writer)
        return self

    def __exit__(self, *exception: object) -> None:
        """Remove it."""
        self._stack.close()

    def write_bytes(self, payload: bytes) -> None:
        """
        Append the call that a message stands for.

        Raises:
            WireError: The value does not have the type of the argument.

        """
        self._appender.write_bytes(payload)
        try:
            called = self._reader.read_one()
        except (TypeError, ValueError, quire.errors.WireError) as error:
            # What follows is where the message is in the temporary queue.
            raise quire.errors.WireError(str(error).partition(" offset=")[0]) from error
        if not called:
            raise quire.errors.WireError("the message is not a call of the interface")

    def write_text(self, text: str) -> None:
        """
        Refuse a text: it is no call.

        Raises:
            WireError: Always: text is not a call.

        """
        raise quire.errors.WireError(
            f"the message is not a call of the interface: text={text!r:.80}"
        )


def _by_name(writer: object, interface: Callable[..., Any]) -> object:
    """
    Return an object with the methods of a method writer, called with what people write.

    That is the names of methods and fields, where the writer has numbers and byte layouts.
    """
    from quire.calls.described import described_methods_of
    from quire.calls.interfaces import METHODS
    from quire.types import names_around

    methods = described_methods_of(interface, names_around())
    calls = {name: staticmethod(getattr(writer, name)) for name in methods}
    return type("Calls", (), {METHODS: methods, **calls})()
