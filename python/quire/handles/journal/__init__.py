"""
Chronicle Queue 5, which Java and Quire append to and tail at the same time.

``queue``, ``appender`` and ``tailer`` have the handles, ``subtopics`` writers of one sub-topic.
"""
