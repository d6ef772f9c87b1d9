"""The online algorithms: LASVM, which has a bias (`lasvm`), and the `gap` family, without one (steps: `gap_steps`).

`arrival` takes an example in and calls the algorithm; `finish` optimises over the members; `removal` takes members
out.  `warm_start` begins with the members of another model, `from_batch` with those of a solution.  `gradient` updates
the gradient and finds what the next step needs, `rescale` gives the members a new scale, and `cccp` removes support
vectors.  `joint_learning` teaches several models at once, over the `union` of their vectors.  The room may import
`core` and `batch`.  Start reading in `arrival`, then `lasvm`.
"""
