# %% [markdown]
# Figure 4 of the 1997 paper: which kinds of instructions a database transaction consists of, without and with the
# byte and word instructions. TPC-B on SQLite today, beside SQL Server then.

# %%
import subprocess
import sys

import pathlength
from pathlength import charts

transactions = sys.argv[1] if len(sys.argv) > 1 else "4000"

# %%
builds, mixes = pathlength.build("tpcb"), pathlength.paper("cached")
for mode in ("cached", "scaled"):
    for build, cpu in (("original", "ev5"), ("byte-word", "ev56")):
        subprocess.run([builds["native"], "load", "tpcb.db"], check=True)
        run = ["run", "tpcb.db", "--mode", mode, "--transactions", transactions]
        mixes[f"{mode} {build}"] = pathlength.count(builds[build], run, unit="tpcb_transaction", batch=50, cpu=cpu)
table = pathlength.group_shares(mixes)
chart = charts.shares(table, "group").properties(title="Instruction groups of a transaction (Figure 4)")
charts.save(chart, "figure4.html")
