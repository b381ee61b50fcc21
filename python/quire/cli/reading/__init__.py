"""From a path to messages: sources, selections, batches and stages."""
