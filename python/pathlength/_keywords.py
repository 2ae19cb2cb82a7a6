"""Keywords that several functions take, by their names."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any, TypedDict, TypeVar, Union, cast

StrPath = Union[str, "os.PathLike[str]"]
Arguments = Union[StrPath, Iterable[StrPath]]
Names = Union[str, Iterable[str]]
Numbers = Union[int, range, None]
Where = Union[str, int, None]

Function = TypeVar("Function", bound=Callable)


class Selection(TypedDict, total=False):
    """A part of a trace: what all of them select.

    - `function` ("name" or "image!name"), `image` ("libc.so.6.1" or "libc"): one or several; with `with_callees`
      also all that the functions call;
    - `addresses`: instructions at these addresses; `data`: those that access these addresses;
    - `thread` ("0.1": process and thread, both from 0) and `process`: one or several;
    - `instructions`: by their number in their thread, from 1; `unit_number`: by the unit of work, from 0.

    Numbers and addresses are one, or a `range`.
    """

    function: Names
    with_callees: bool
    image: Names
    addresses: Numbers
    data: Numbers
    thread: Names
    process: Union[int, Iterable[int], None]
    instructions: Numbers
    unit_number: Numbers


class Part(TypedDict, total=False):
    """The part of a program's run, or of a trace, that is simulated.

    - `unit`: only calls of this function, with all that they call; of these the first `skip` are left out, the next
      `warm_up` are simulated and not counted, and `units` are counted;
    - `from_` and `until`: where a program's simulation begins and ends: a symbol, symbol+offset, image!symbol, an
      address as "0x120001000", or a number of instructions;
    - `thread` ("0.1": process and thread, both from 0) and `process`: of a trace, one or several;
    - `cpu` and `sysroot`: the processor that a program runs on, instead of the machine's, and where its libraries are;
    - `stdin`, `stdout`, `stderr`: the program's streams, as for `subprocess.run`.
    """

    unit: str
    skip: int
    units: int
    warm_up: int
    from_: Where
    until: Where
    thread: Names
    process: Union[int, Iterable[int], None]
    cpu: str
    sysroot: StrPath
    stdin: Any
    stdout: Any
    stderr: Any


def takes(keywords: type) -> Callable[[Function], Function]:
    """Shows the keywords of a TypedDict in the signature of a function with `**name`, and rejects others."""

    def decorate(function: Function) -> Function:
        written = inspect.signature(function)
        *own, rest = written.parameters.values()
        assert rest.kind is inspect.Parameter.VAR_KEYWORD
        hints = {name: getattr(hint, "__forward_arg__", hint) for name, hint in keywords.__annotations__.items()}
        named = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
            for name, hint in hints.items()
        ]
        signature = written.replace(parameters=[*own, *named])

        @functools.wraps(function)
        def checked(*args, **kwargs):
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            return function(*args, **kwargs)

        checked.__signature__ = signature  # type: ignore[attr-defined]
        return cast(Function, checked)

    return decorate


def listed(names: Any) -> list:
    """One or several as a list; a text or a path is one."""
    if names is None:
        return []
    return [names] if isinstance(names, (str, bytes, int, float, os.PathLike)) else list(names)
