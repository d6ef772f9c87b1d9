"""From raw records to numbers: tables, events and texts as people have them, without a pipeline before.

Begin with `records`, the transformer.  `nesting` takes records as they come, and `given` what a user says of fields;
`field` decides what a field is and writes its columns; `values` and `numerals` read a single value; `notices` has the
warnings; `embedding` uses a model of texts that was trained elsewhere, such as that of `static_embedding`; `summary`
tells what became of each field; `saving` keeps all of it.  The folder imports `core` only.
"""

from streamsvm.features.embedding import Embedder as Embedder
from streamsvm.features.records import Records as Records
from streamsvm.features.summary import FieldSummary as FieldSummary
