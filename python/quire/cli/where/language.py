"""The language of ``--where``, as a grammar, and the conditions that its expressions become."""

from __future__ import annotations

import re
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Final, cast

from lark import (
    Lark,
    Token,
    Transformer,
    UnexpectedCharacters,
    UnexpectedToken,
    v_args,  # pyright: ignore[reportUnknownVariableType]
)

from quire.cli.where.conditions import Condition, Field, Joined, Literal, Not, Predicate
from quire.errors import WhereError

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

_GRAMMAR: Final = r"""
    ?start: either
    ?either: both ("or"i both)*
    ?both: negated ("and"i negated)*
    ?negated: NOT negated -> inverse
        | "(" either ")"
        | test

    ?test: FIELD -> is_true
        | FIELD SIGN (FIELD | literal) -> compared
        | literal SIGN FIELD -> turned
        | FIELD [NOT] "in"i "(" literal ("," literal)* ")" -> among
        | FIELD (LIKE | UNLIKE) TEXT -> matched
        | FIELD "is"i [NOT] "null"i -> missing

    ?literal: NUMBER | TEXT | TRUE | FALSE

    TRUE: "true"i
    FALSE: "false"i
    NOT: "not"i
    SIGN: /<=|>=|!=|==|[=<>]/
    LIKE: "~"
    UNLIKE: "!~"
    NUMBER: /-?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])/
    TEXT: /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/
    FIELD: /(?:[^\W\d]\w*|`[^`]+`)(?:\.(?:\w+|`[^`]+`))*/i
    %ignore /\s+/
"""
_FUNCTIONS: Final = {
    "=": "equal",
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PART: Final = re.compile(r"`([^`]+)`|(\w+)")
_WHOLE: Final = re.compile(r"-?(0[xX][0-9a-fA-F]+|\d+)")
_NESTING: Final = {"LPAR": 1, "RPAR": -1}
_DEEPEST: Final = 50

# What an error says was expected: the first whose tokens may all follow.
_EXPECTED: Final = (
    ({"RPAR"}, ")"),
    ({"AND"}, "and, or, or the end"),
    ({"$END"}, "and, or, or the end"),
    ({"FIELD", "NUMBER"}, "a field, a number, or a text in quotes"),
    ({"FIELD"}, "a field"),
    ({"NUMBER"}, "a number, or a text in quotes"),
    ({"TEXT"}, "a regular expression in quotes"),
    ({"SIGN"}, "a comparison"),
    ({"NULL"}, "null"),
    ({"LPAR"}, "("),
    ({"IN"}, "in"),
)


def parse_where(text: str) -> Condition:
    """
    Return an expression as a condition.

    Raises:
        WhereError: The expression is malformed.

    """
    parser = _parser()
    try:
        depths = accumulate(_NESTING.get(token.type, 0) for token in parser.lex(text))
        if max(depths, default=0) > _DEEPEST:
            raise WhereError(f"nested too deeply: most={_DEEPEST}")
        return parser.parse(text)  # type: ignore[return-value] # what the transformer makes
    except UnexpectedCharacters as error:
        at = cast("int", error.pos_in_stream)
        found = f"unexpected: {text[at : at + 10]!r} column={at + 1}"
        raise WhereError(f"{found} where={text!r}") from None
    except UnexpectedToken as error:
        token: Token = error.token
        is_end = token.type == "$END"
        found = "the end" if is_end else f"{token.value!r} column={(token.start_pos or 0) + 1}"
        expected = _expected(error.accepts)
        raise WhereError(f"found={found} expected: {expected} where={text!r}") from None


def _expected(accepted: AbstractSet[str]) -> str:
    return next(shown for tokens, shown in _EXPECTED if tokens <= accepted)


@v_args(inline=True)
class _Conditions(Transformer[Token, Condition]):
    """Makes conditions of what the parser finds, from the innermost outwards."""

    def NUMBER(self, token: Token) -> int | float:  # noqa: N802 - the name of the terminal
        if _WHOLE.fullmatch(token) is None:
            return float(token)
        return int(token, 16 if "x" in token.lower() else 10)

    def TEXT(self, token: Token) -> str:  # noqa: N802
        return re.sub(r"\\(['\"\\])", r"\1", token[1:-1])

    def TRUE(self, _token: Token) -> bool:  # noqa: N802
        return True

    def FALSE(self, _token: Token) -> bool:  # noqa: N802
        return False

    def FIELD(self, token: Token) -> Field:  # noqa: N802
        return Field(quoted or plain for quoted, plain in _PART.findall(token))

    def either(self, *parts: Condition) -> Condition:
        return Joined(parts, is_and=False)

    def both(self, *parts: Condition) -> Condition:
        return Joined(parts, is_and=True)

    def inverse(self, _token: Token, inner: Condition) -> Condition:
        return inner.inner if isinstance(inner, Not) else Not(inner)

    def is_true(self, field: Field) -> Condition:
        return Predicate(field, "is_true")

    def compared(self, field: Field, sign: Token, other: Literal | Field) -> Condition:
        return Predicate(field, _FUNCTIONS[sign], other)

    def turned(self, literal: Literal, sign: Token, field: Field) -> Condition:
        return Predicate(field, _FUNCTIONS[_TURNED.get(sign, sign)], literal)

    def among(self, field: Field, negated: Token | None, *choices: Literal) -> Condition:
        return _unless(negated, Predicate(field, "is_in", choices))

    def matched(self, field: Field, sign: Token, pattern: str) -> Condition:
        try:
            found = Predicate(field, "matches", re.compile(pattern))
        except re.error as error:
            raise WhereError(f"not a regular expression: {pattern!r}: {error}") from None
        return _unless(sign.type == "UNLIKE", found)

    def missing(self, field: Field, negated: Token | None) -> Condition:
        return _unless(negated, Predicate(field, "is_null"))


def _unless(negated: object, asked: Predicate) -> Condition:
    return Not(asked) if negated else asked


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", lexer="basic", transformer=_Conditions())
