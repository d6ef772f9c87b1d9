"""Folds: which examples are held out, and the solution without them.

Start in `folds`, which deals examples out.  `splits` walks through the folds of one problem, `problem` prepares it, and
`parallel` shares the folds out among processes.
"""
