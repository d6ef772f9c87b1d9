"""The online algorithms: LASVM, which has a bias (`lasvm`), and the `gap` family, without one (steps: `gap_steps`).

`arrival` takes an example in and calls the algorithm; `finish` optimises over the members; `forget`, `bounded` and
`leave_out` take members out.  The room may import `core` and `batch`.  Start reading in `arrival`, then `lasvm`.
"""
