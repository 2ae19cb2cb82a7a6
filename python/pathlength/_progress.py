"""How far long work has come."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Optional, Union

from ._pathlength import PathlengthError

Progress = Union[bool, Callable[[int], object], None]
"""How progress is reported: to a function; by a tqdm bar (True); not at all (False); or by a bar to users of a
terminal (None)."""


@contextmanager
def meter(progress: Progress, unit: str, total: Optional[int] = None) -> Iterator[Callable[[int], object]]:
    """A function to call with the number of units done so far."""
    if callable(progress):
        yield progress
        return
    bar = _bar(progress, unit, total)
    if bar is None:
        yield lambda done: None
        return
    with bar:
        yield lambda done: bar.update(done - bar.n)


def _bar(progress: Optional[bool], unit: str, total: Optional[int]):
    if progress is False or (progress is None and not sys.stderr.isatty()):
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        if progress is None:
            return None
        raise PathlengthError("progress=True needs tqdm: pip install tqdm") from None
    return tqdm(total=total, unit=unit, unit_scale=True, leave=False)
