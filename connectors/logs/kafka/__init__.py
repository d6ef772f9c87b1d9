"""Apache Kafka as a record log, with kafka-python: only this folder imports that library.

It imports `transport`, which says what a log is, and nothing of settings: `cluster.options.KafkaOptions` is all that it
is told.
Start reading at `backend.KafkaBackend`.  It names the parts that `cluster.log.ClusterLog` joins: a member of the group
(`group`), a consumer (`reader`) and a producer (`outputs`).  `options` and `checks` say what a [kafka] section may
hold.
"""
