"""What the clients of a Kafka cluster share, whichever library they speak through: it imports neither library.

`log.ClusterLog` joins a group (`group`), a reader (`reader`) and a producer (`outputs`), and keeps their states.  The
folders `kafka` and `rdkafka` beside this one talk to the brokers.  `options.KafkaOptions` is all that they are told.
"""
