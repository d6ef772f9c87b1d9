"""A partition's state on a topic or in an object store: the next owner needs no disk of the last one.

`contents` says which records of the state count, and `ledger` reads and writes them.  `places` has the topic, `objects`
the object store.  `store` is a `CheckpointStore` over a ledger, whose folder is a cache.
"""
