"""Search over C and gamma: `search` is the way in, `grid` has the result, and `along_c` follows one gamma along C."""
