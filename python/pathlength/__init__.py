"""Run, count and trace unmodified Alpha/Linux programs.

>>> import pathlength
>>> counts = pathlength.count("./hello")
>>> counts.groups.column_names
['group', 'share']
"""

from ._keywords import Part, Selection
from ._measured import annotate, caches, calls, check, compare, faults, mrc, static, time, units
from ._pathlength import VERSION as __version__
from ._pathlength import Counts, Execution, Mark, Mix, PathlengthError, TraceError, TraceWarning, machines
from ._programs import attach, build, count, run, trace
from ._tables import group_shares, paper
from ._trace import Trace

__all__ = [
    "Counts",
    "Execution",
    "Mark",
    "Mix",
    "Part",
    "PathlengthError",
    "Selection",
    "Trace",
    "TraceError",
    "TraceWarning",
    "__version__",
    "annotate",
    "attach",
    "build",
    "caches",
    "calls",
    "check",
    "compare",
    "count",
    "faults",
    "group_shares",
    "machines",
    "mrc",
    "paper",
    "run",
    "static",
    "time",
    "trace",
    "units",
]
