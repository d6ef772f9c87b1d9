"""A partition's state on the topic log.state: the next owner needs no disk of the last one.

`ledger` is the partition of the topic, and says which of its records count; `store` is a `CheckpointStore` over it,
whose folder is a cache.
"""
