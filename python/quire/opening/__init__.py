"""
How a queue is opened: its options, what sets them from outside, and finding queues.

``opener`` has :func:`quire.open`, ``options`` the values and formats of each option, ``settings``
the options of the environment and of ``quire.toml``, ``discovery`` the search for queues below a
directory, ``by_path`` reopening a queue that was pickled or named by its path.
"""
