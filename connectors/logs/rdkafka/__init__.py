"""Apache Kafka as a record log, with librdkafka (confluent-kafka): only this folder imports that library.

It is an extra, so no file outside this folder imports this folder before a configuration has asked for it.  Start
reading at `backend.RdKafkaBackend`; `cluster.log.ClusterLog` says what it does, and this folder only how librdkafka
does it.
"""
