"""The configuration of all processes: one TOML file, overridden by environment variables, overridden by flags.

It may import logs, records, runtime and the engine.  Users import `Settings` and its parts from `sections` (which
`model` and `processes` belong to), `load` from `loading`, and `open_log` from `opening`, which alone knows the kinds of
logs.  Start reading at `loading.load`: it collects the values (`layers`), and checks them one by one (`checks`) and
together (`contradictions`, `kafka_section`).  `topics` says which topics a configuration needs, and what is wrong with
them.
"""
