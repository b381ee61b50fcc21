"""Method calls and message classes: the types of values, method writers and method readers."""
