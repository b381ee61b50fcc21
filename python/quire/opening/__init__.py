"""
How a queue is opened: its options, what sets them from outside, and finding queues.

``opener`` has :func:`quire.open`, ``options`` what each option takes and which format has it,
``settings`` those of the environment and of ``quire.toml``, ``discovery`` the queues below a
directory, ``by_path`` what opens a queue again where it was pickled or named by its path.
"""
