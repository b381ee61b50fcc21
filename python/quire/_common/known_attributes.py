"""Handles that refuse to be given attributes they do not have: an assignment may be misspelt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar


class KnownAttributes:
    """
    A handle whose public attributes are those of its class.

    Classes that users derive from it have attributes of their own, so that theirs take any.
    """

    _is_extended: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:  # noqa: ANN401 - those of other bases
        """Take note of classes of users."""
        super().__init_subclass__(**options)
        cls._is_extended = cls._is_extended or cls.__module__.partition(".")[0] != "quire"

    if not TYPE_CHECKING:  # type checkers know the attributes

        def __setattr__(self, name: str, value: object) -> None:
            """
            Set an attribute that there is.

            Raises:
                AttributeError: The class has no such attribute.

            """
            if name[:1] != "_" and not hasattr(type(self), name) and not self._is_extended:
                self._refuse_attribute(name)
            super().__setattr__(name, value)

    def _refuse_attribute(self, name: str) -> None:
        from difflib import get_close_matches

        if name in getattr(self, "_missing", ()):
            getattr(self, name)  # the error says why the format lacks it
        known = [it for it in dir(type(self)) if not it.startswith("_")]
        near = [repr(it) for it in get_close_matches(name, known)]
        hint = f": did you mean {' or '.join(near)}?" if near else ""
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'{hint}", name=name, obj=self
        )
