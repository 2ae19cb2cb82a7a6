"""Tables made from several counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

import pyarrow as pa

from . import _pathlength
from ._pathlength import Counts, Mix


def group_shares(counts: Mapping[str, Union[Counts, Mix]]) -> pa.Table:
    """The share in percent of each group of instructions (Table 13 of the 1997 paper), a column each.

    >>> table = pathlength.group_shares({"today": pathlength.count("./hello"), **pathlength.paper("cached")})
    >>> table.column_names
    ['group', 'today', '1997_original', '1997_byte_word']
    """
    mixes = [(name, one.mix if isinstance(one, Counts) else one) for name, one in counts.items()]
    return _pathlength.group_shares(mixes)


def paper(mode: str) -> dict[str, Mix]:
    """What a transaction executed in 1997, "cached" or "scaled", by build.

    >>> pathlength.paper("cached")["1997 original"]["ldq_u"] > 0
    True
    """
    return dict(zip(("1997 original", "1997 byte-word"), _pathlength.paper(mode)))
