"""A trained model leaves Python: as C, JavaScript, Java, ONNX, LIBSVM's text, or JSON that any program can read.

Begin with `description`, which says in plain values how a model decides.  Each other file writes it for one target;
`templates` has the programs into which they put it.  docs/export.md specifies the description.
"""

from streamsvm.export.c import to_c as to_c
from streamsvm.export.description import Description as Description
from streamsvm.export.description import Named as Named
from streamsvm.export.description import describe as describe
from streamsvm.export.java import to_java as to_java
from streamsvm.export.javascript import javascript_reader as javascript_reader
from streamsvm.export.javascript import to_javascript as to_javascript
from streamsvm.export.libsvm import to_libsvm as to_libsvm
from streamsvm.export.onnx import to_onnx as to_onnx
from streamsvm.export.plain import to_json as to_json
