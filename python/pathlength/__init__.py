"""Run, count and trace unmodified Alpha/Linux programs.

>>> import pathlength
>>> counts = pathlength.count("./hello")
>>> counts.groups.column_names
['group', 'share']
"""

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
    "PathlengthError",
    "Trace",
    "TraceError",
    "TraceWarning",
    "__version__",
    "attach",
    "build",
    "count",
    "group_shares",
    "machines",
    "paper",
    "run",
    "trace",
]
