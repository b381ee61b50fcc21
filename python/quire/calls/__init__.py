"""Method calls and messages: interfaces, message classes, method writers and method readers."""
