"""From what a user gives to what the engine takes: names to columns, values to rows, and running scales.

Start in `features`, which keeps the names and their columns.  `checks` refuses bad values, `named_rows` and `raw_rows`
hold examples, `scaling` follows their scale, `training_set` joins X and y, and `reservoir` keeps a `sample` of the
stream.
"""
