"""Events whose bytes begin with the header of a schema registry, whose schemas are Avro, Protobuf or JSON Schema.

`client` asks the registry, `format` reads records, and `avro` and `protobuf` make readers of schemas.
"""
