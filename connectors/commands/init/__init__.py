"""The command ``init``: look at a file or a topic (`fields`, `roles`), and write a configuration for it (`writing`)."""
