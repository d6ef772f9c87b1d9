"""What the bytes of records mean: one module for each kind of record, which both writes and reads it.

It may import the engine, runtime and logs.  Start with `codec`, which reads events and labels; then `labels`,
`predictions`, `questions`, `dead_letters` and `published` (models).  `files` reads events from files with `columns`,
`label_files` reads labels from files, `label_history` reads the labels that a log has, and `parquet` is for both.
`annotators` says how far people agree.
"""
