"""A schema registry, played by a small server that has the documented routes of Confluent's."""

import base64
import http.server
import json
import re
import threading
from urllib.parse import parse_qs, unquote, urlsplit


class Registry(http.server.ThreadingHTTPServer):
    """Schemas by id and by subject and version; each version of a subject has an id.

    Attributes
    ----------
    failing : list of int
        Status codes of the next answers, as of a registry in trouble.
    broken : set of int
        Ids of the schemas for which the registry fails although it is well.
    login : str
        "USER:PASSWORD" that each request must have; empty: none.
    asked : list of str
        The paths of all requests.
    """

    daemon_threads = True

    def __init__(self, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.schemas = {}  # by id
        self.versions = {}  # ids by subject
        self.failing, self.login, self.asked = [], "", []
        self.broken = set()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def register(self, subject, schema, kind="AVRO", references=()):
        """Add a schema; return its id.

        A schema is text, or a descriptor of Protobuf.  Text of Protobuf has no descriptor, as in Apicurio's registry.
        """
        id_ = len(self.schemas) + 1
        self.schemas[id_] = (
            kind,
            schema,
            [dict(zip(("name", "subject", "version"), r, strict=True)) for r in references],
        )
        self.versions.setdefault(subject, []).append(id_)
        return id_

    def close(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        server.asked.append(self.path)
        path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        if server.failing:
            return self.answer(server.failing.pop(0), {"error_code": 50001, "message": "Error in the backend"})
        expected = f"Basic {base64.b64encode(server.login.encode()).decode()}"
        if server.login and self.headers["Authorization"] != expected:
            return self.answer(401, {"error_code": 401, "message": "Unauthorized"})
        if found := re.fullmatch(r"/schemas/ids/(\d+)", path):
            if int(found[1]) not in server.schemas:
                return self.answer(404, {"error_code": 40403, "message": f"Schema {found[1]} not found"})
            if int(found[1]) in server.broken:
                return self.answer(500, {"error_code": 50001, "message": "NullPointerException"})
            return self.answer(200, self.shown(int(found[1]), query))
        if found := re.fullmatch(r"/subjects/([^/]+)/versions/(\d+)", path):
            ids = server.versions.get(unquote(found[1]), [])
            if not ids:
                return self.answer(404, {"error_code": 40401, "message": f"Subject '{found[1]}' not found."})
            if not 0 < int(found[2]) <= len(ids):
                return self.answer(404, {"error_code": 40402, "message": f"Version {found[2]} not found."})
            id_ = ids[int(found[2]) - 1]
            if id_ in server.broken:
                return self.answer(500, {"error_code": 50001, "message": "NullPointerException"})
            more = {"subject": unquote(found[1]), "version": int(found[2]), "id": id_}
            return self.answer(200, {**more, **self.shown(id_, query)})
        return self.answer(404, {"error_code": 404, "message": "HTTP 404 Not Found"})

    def shown(self, id_, query):
        kind, schema, references = self.server.schemas[id_]
        is_serialized = query.get("format") == ["serialized"]
        if kind == "PROTOBUF" and isinstance(schema, str):
            schema = "\n\x05Event\x12\x03org\ufffd\x01" if is_serialized else schema
        elif kind == "PROTOBUF":
            schema = base64.b64encode(schema.SerializeToString()).decode() if is_serialized else f"// {schema.name}"
        shown = {"schema": schema}
        if kind != "AVRO":
            shown["schemaType"] = kind  # Avro is the default, which is left out
        return {**shown, "references": references} if references else shown

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
