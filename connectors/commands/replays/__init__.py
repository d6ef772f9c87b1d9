"""The commands ``dlq`` and ``replay``, by which the trainer consumes records again."""
