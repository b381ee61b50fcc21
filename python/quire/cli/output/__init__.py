"""What verbs print: messages, rows and facts, progress and colour."""
