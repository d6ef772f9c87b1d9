"""The commands ``dlq`` and ``replay``, which let the trainer consume records again."""
