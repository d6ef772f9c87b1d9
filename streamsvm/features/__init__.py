"""From raw records to numbers: tables, events and texts as people have them, without a pipeline before.

Begin with `records`, the transformer.  `field` decides what a field is and writes its columns; `values` reads a single
value; `embedding` uses a model of texts that was trained elsewhere, such as that of `static_embedding`; `summary` tells
what became of each field; `saving` keeps all of it.  The folder imports `core` only.
"""

from streamsvm.features.embedding import Embedder as Embedder
from streamsvm.features.records import Records as Records
from streamsvm.features.summary import FieldSummary as FieldSummary
