"""The language of ``--where``: conditions on the fields of messages."""

from __future__ import annotations

import re
from typing import Final, cast

from quire.cli.where.conditions import (
    COMPARISONS,
    Both,
    Compared,
    Condition,
    Field,
    In,
    IsNull,
    IsTrue,
    Literal,
    Matches,
    Not,
)
from quire.errors import WhereError

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<number>-?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.]))
      | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<name>(?:[^\W\d]\w*|`[^`]+`)(?:\.(?:\w+|`[^`]+`))*)
      | (?P<sign><=|>=|!=|==|!~|[=<>~(),])
    )""",
    re.VERBOSE,
)
_PART: Final = re.compile(r"`([^`]+)`|(\w+)")
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CONSTANTS: Final = {"true": True, "false": False}
_RESERVED: Final = {"and", "or", "not", "in", "is", "null", *_CONSTANTS}
_DEEPEST: Final = 50


def parse_where(text: str) -> Condition:
    """
    Return an expression as a condition.

    Raises:
        WhereError: The expression is malformed.

    """
    return _Parser(text).whole()


class _Parser:
    """Recursive descent: or, and, not, comparison."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._tokens = [*self._split()]

    def whole(self) -> Condition:
        found = self._either()
        if self._peek() is not None:
            raise self._wrong("and, or, or the end")
        return found

    def _split(self) -> list[tuple[str, str, int]]:
        tokens: list[tuple[str, str, int]] = []
        at = 0
        while self._text[at:].strip():
            match = _TOKEN.match(self._text, at)
            if match is None:
                start = at + len(self._text[at:]) - len(self._text[at:].lstrip())
                raise WhereError(
                    f"unexpected: {self._text[start : start + 10]!r} column={start + 1}"
                    f" where={self._text!r}"
                )
            kind = cast("str", match.lastgroup)
            tokens.append((kind, match[kind], match.start(kind)))
            at = match.end()
        return tokens

    def _peek(self) -> str | None:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else None

    def _word(self) -> str | None:
        """Return the next token in lower case if it is a word of the language."""
        if self._at < len(self._tokens) and self._tokens[self._at][0] == "name":
            word = self._tokens[self._at][1].lower()
            return word if word in _RESERVED else None
        return None

    def _takes(self, *wanted: str) -> bool:
        """Step over these tokens, if they come next."""
        start = self._at
        for token in wanted:
            if token not in {self._word(), self._peek()}:
                self._at = start
                return False
            self._at += 1
        return True

    def _wrong(self, expected: str) -> WhereError:
        if self._at < len(self._tokens):
            _, token, start = self._tokens[self._at]
            found = f"found={token!r} column={start + 1}"
        else:
            found = "found=the end"
        return WhereError(f"{found} expected: {expected} where={self._text!r}")

    def _need(self, token: str) -> None:
        if not self._takes(token):
            raise self._wrong(token)

    def _either(self) -> Condition:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise WhereError(f"nested too deeply: most={_DEEPEST}")
        found = self._all()
        while self._takes("or"):
            found = Both(found, self._all(), is_and=False)
        self._depth -= 1
        return found

    def _all(self) -> Condition:
        found = self._negated()
        while self._takes("and"):
            found = Both(found, self._negated(), is_and=True)
        return found

    def _negated(self) -> Condition:
        is_negated = False
        while self._takes("not"):
            is_negated = not is_negated
        if self._takes("("):
            found = self._either()
            self._need(")")
        else:
            found = self._comparison()
        return Not(found) if is_negated else found

    def _comparison(self) -> Condition:
        left = self._operand()
        if not isinstance(left, tuple):
            return self._after_literal(left)
        if (found := self._after_field(left)) is not None:
            return found
        sign = self._peek()
        if sign not in COMPARISONS:
            return IsTrue(left)
        self._at += 1
        return Compared(left, sign, self._operand())

    def _after_field(self, field: Field) -> Condition | None:
        """Return a condition that is no comparison, if one follows."""
        found: Condition | None = None
        is_negated = False
        if self._takes("is"):
            is_negated = self._takes("not")
            self._need("null")
            found = IsNull(field)
        elif self._takes("not", "in"):
            is_negated = True
            found = In(field, self._choices())
        elif self._takes("in"):
            found = In(field, self._choices())
        elif self._takes("~"):
            found = Matches(field, self._pattern())
        elif self._takes("!~"):
            is_negated = True
            found = Matches(field, self._pattern())
        return Not(found) if found is not None and is_negated else found

    def _after_literal(self, left: Literal) -> Condition:
        sign = self._peek()
        if sign not in COMPARISONS:
            raise self._wrong("a comparison")
        self._at += 1
        right = self._operand()
        if not isinstance(right, tuple):
            self._at -= 1
            raise self._wrong("a field")
        return Compared(right, _TURNED.get(sign, sign), left)

    def _operand(self) -> Literal | Field:
        literal = self._literal()
        if literal is not None:
            return literal
        if self._at < len(self._tokens) and self._word() is None:
            kind, token, _ = self._tokens[self._at]
            if kind == "name":
                self._at += 1
                return tuple(quoted or plain for quoted, plain in _PART.findall(token))
        raise self._wrong("a field, a number, or a text in quotes")

    def _literal(self) -> Literal | None:
        if self._at >= len(self._tokens):
            return None
        kind, token, _ = self._tokens[self._at]
        found: Literal | None = None
        if kind == "text":
            found = re.sub(r"\\(['\"\\])", r"\1", token[1:-1])
        elif kind == "number":
            is_whole = re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)", token) is not None
            is_hex = "x" in token.lower()
            found = int(token, 16 if is_hex else 10) if is_whole else float(token)
        elif self._word() in _CONSTANTS:
            found = _CONSTANTS[token.lower()]
        if found is not None:
            self._at += 1
        return found

    def _choices(self) -> tuple[Literal, ...]:
        self._need("(")
        found: list[Literal] = []
        while True:
            literal = self._literal()
            if literal is None:
                raise self._wrong("a number, or a text in quotes")
            found.append(literal)
            if not self._takes(","):
                break
        self._need(")")
        return tuple(found)

    def _pattern(self) -> re.Pattern[str]:
        literal = self._literal()
        if not isinstance(literal, str):
            raise self._wrong("a regular expression in quotes")
        try:
            return re.compile(literal)
        except re.error as error:
            raise WhereError(f"no regular expression: {literal!r}: {error}") from None
