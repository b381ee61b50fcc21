"""Text that is safe to print on a terminal, whatever a queue, a path or a message holds."""

from __future__ import annotations

from typing import Final
from unicodedata import category

_UNSEEN: Final = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_ASCII: Final = 0x7F
_PAST_JSON: Final = 0x1_0000
_JOINERS: Final = "\u200c\u200d"  # of scripts, and of emoji


class _Escapes(dict[int, str | int]):
    """
    Escapes of characters that move a terminal's cursor or reorder its text.

    Tabs and line ends are kept.
    """

    def __missing__(self, code: int) -> str | int:
        """Decide on a character when it is first met."""
        char = chr(code)
        is_harmless = char in _JOINERS or category(char) not in _UNSEEN
        self[code] = code if is_harmless else _escape(code)
        return self[code]


def _escape(code: int) -> str:
    if code == ord("\r"):
        return "\\r"
    return (
        chr(code).encode("ascii", "backslashreplace").decode()
        if code > _ASCII
        else f"\\x{code:02x}"
    )


_ESCAPES: Final = _Escapes({ord("\t"): "\t", ord("\n"): "\n"})
_ON_ONE_LINE: Final = _Escapes({ord("\t"): "\t", ord("\n"): "\\n"})


class _JsonEscapes(dict[int, str | int]):
    """The same characters as escapes of JSON, which has none for those beyond 16 bits."""

    def __missing__(self, code: int) -> str | int:
        """Decide on a character when it is first met: to try all of them takes longer."""
        is_tried = _ASCII <= code < _PAST_JSON and chr(code) not in _JOINERS
        is_unseen = is_tried and category(chr(code)) in _UNSEEN
        self[code] = f"\\u{code:04x}" if is_unseen else code
        return self[code]


_IN_JSON: Final = _JsonEscapes()


def escape_controls(text: str) -> str:
    """Return a text with its control characters as escapes."""
    return text if text.isprintable() else text.translate(_ESCAPES)


def escape_line(text: str) -> str:
    """Return a text with its control characters and line ends as escapes."""
    return text if text.isprintable() else text.translate(_ON_ONE_LINE)


def escape_json(text: str) -> str:
    """Return JSON on one line with its control characters as escapes."""
    return text if text.isprintable() else text.translate(_IN_JSON)
