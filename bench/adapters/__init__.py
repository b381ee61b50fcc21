"""
One module for each system that is measured.

Each has ``NAME`` and ``version()``, which raises ``Missing`` where the system is not installed. It
has ``run(task)``, called in a process of its own by ``bench.worker``, or else ``command(task)``,
which says how to start another program.
"""
