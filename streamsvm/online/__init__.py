"""The online algorithms: LASVM, which has a bias (`lasvm`), and the `gap` family, without one (steps: `gap_steps`).

`arrival` takes an example in and calls the algorithm; `finish` optimises over the members; `removal` takes members
out.  `warm_start` and `from_batch` begin with the members of another model.  The room may import `core` and `batch`.
Start reading in `arrival`, then `lasvm`.
"""
