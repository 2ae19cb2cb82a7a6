//! The native part of the Python package: tables and traces. Programs run in processes of their own, of the
//! `pathlength` command, as `python/pathlength/_command.py` does it.
