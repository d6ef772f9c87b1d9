"""Record logs: what a log is (`transport`), the embedded one, and Kafka's.

It imports the engine's core and runtime only; it knows no settings and decodes no record.  Start reading at
`transport.Transport`.  `embedded.LocalLog` keeps it in a folder, whose files `segments` describes;
`cluster.log.ClusterLog` keeps it on a Kafka cluster.  `reading` reads a log to its end.  Each kind of log is also a
`backend.Backend`, which tells what no open log can.
"""
