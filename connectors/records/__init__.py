"""What the bytes of records mean: one module for each kind of record, which both writes and reads it.

It may import the engine, runtime and logs.  Start with `codec`, which reads events and labels; then `labels`,
`predictions`, `dead_letters` and `published` (models).  `files` reads events from files: `text_files` and `arrays` have
their rows, `columns` their meaning.
`people` has the questions and what becomes of the answers.
"""
