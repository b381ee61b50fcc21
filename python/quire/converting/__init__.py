"""Moving a queue into another format, with a map of its indexes."""
