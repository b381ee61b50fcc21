"""What every part may use: checked arguments, durable files, units, and waiting for messages."""
