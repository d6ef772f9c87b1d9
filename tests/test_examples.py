"""The examples run as they stand, from any folder, without a warning."""

import base64
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from described import Twin
from exported import dicts, model_of, table
from programs import java

from streamsvm.connectors.records.published import Publisher
from streamsvm.export import to_json
from streamsvm.export.description import text_of

ELSEWHERE = {"kafka_round.py"}  # needs a broker: tests/kafka/test_commands.py
FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.name not in ELSEWHERE)
NEEDS = {"bytewax_flow.py": "bytewax", "dask_grid.py": "distributed", "ray_grid.py": "ray"}  # what is no dependency


@pytest.mark.long
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(path, tmp_path):
    if path.name in NEEDS:
        pytest.importorskip(NEEDS[path.name])
    script = [sys.executable, "-W", "error", str(path)]
    answer = subprocess.run(script, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout


ASK = """
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.StringTokenizer;

public final class Ask {
    private static Object value(StringTokenizer tokens) {
        String token = tokens.nextToken();
        if (token.isBlank() || token.equals(",") || token.equals(":")) return value(tokens);
        if (token.equals("{")) {
            Map<String, Object> map = new HashMap<>();
            for (Object key = value(tokens); key != tokens; key = value(tokens)) map.put((String) key, value(tokens));
            return map;
        }
        if (token.equals("[")) {
            List<Object> list = new ArrayList<>();
            for (Object own = value(tokens); own != tokens; own = value(tokens)) list.add(own);
            return list;
        }
        if (token.equals("]") || token.equals("}")) return tokens; // the end
        if (token.equals("null")) return null;
        if (token.equals("true") || token.equals("false")) return token.equals("true");
        if (!token.equals("\\"")) return Double.valueOf(token);
        StringBuilder text = new StringBuilder();
        for (token = tokens.nextToken(); !token.equals("\\""); token = tokens.nextToken()) text.append(token);
        return text.toString();
    }

    @SuppressWarnings("unchecked")
    private static Map<String, ?> object(byte[] text) {
        return (Map<String, ?>) value(new StringTokenizer(new String(text), "[]{}:, \\"", true));
    }

    @SuppressWarnings("unchecked")
    public static void main(String[] none) throws Exception {
        Publications published = new Publications(Ask::object);
        for (String line : Files.readAllLines(Path.of("told.txt"))) {
            String[] parts = line.split(" ");
            byte[] bytes = parts.length > 1 ? Base64.getDecoder().decode(parts[1]) : null;
            if (!parts[0].equals("?")) published.put(parts[0], bytes);
            else if (published.models.isEmpty()) System.out.println("none");
            else {
                Model.Said said = published.models.get("json-p0").say((Map<String, Number>) object(bytes));
                System.out.println(said.left() + ";" + java.util.Arrays.toString(said.probabilities()));
            }
        }
    }
}
"""


class Topic:
    """Keeps what is produced as lines: keys and values."""

    def __init__(self):
        self.lines = []

    def produce(self, topic, value, key, partition):
        self.lines.append(
            " ".join([key.decode(), base64.b64encode(value).decode() if value is not None else ""]).strip()
        )

    def ask(self, x):
        self.lines.append(f"? {base64.b64encode(json.dumps(x).encode()).decode()}")


@pytest.mark.long
def test_java_follows_the_topic_of_models(tmp_path):
    models = [model_of(name) for name in ("scaled", "linear", "poly", "sigmoid", "threshold", "rest")]
    models += [model_of(name) for name in ("decides", "decides rest")]
    rows = dicts(table(20, 3))
    topic, right = Topic(), []
    publisher = Publisher(topic, "model", chunk_bytes=5000)
    topic.ask(rows[0])
    for ver, model in enumerate(models):
        publisher.publish("p0", b"a snapshot", {"epoch": 1, "ver": ver})
        publisher.publish("json-p0", to_json(model).encode(), {"epoch": 1, "ver": ver})
        for x in rows:
            topic.ask(x)
        twin = Twin(to_json(model))
        _, p, labels = twin.answers(rows)
        right += zip(twin.sets(rows) if twin.told["guarantee"] else [[y] for y in labels], p.tolist(), strict=True)
    publisher.publish("json-p0", b"{}", {"epoch": 0, "ver": 99})  # by an owner that another one has followed
    topic.ask(rows[-1])
    publisher.withdraw("json-p0")
    topic.ask(rows[-1])
    (tmp_path / "told.txt").write_text("\n".join(topic.lines))
    (tmp_path / "Ask.java").write_text(ASK)
    for name in ("Model.java", "Publications.java"):
        shutil.copy(FOLDER / "follow" / name, tmp_path)
    java(tmp_path, "javac", "-Xlint:all", "-Werror", "Ask.java")
    before, *said, last, after = java(tmp_path, "java", "Ask").splitlines()
    assert (before, last, after) == ("none", said[-1], "none")
    for (left, p), own in zip(right, said, strict=True):
        labels, probabilities = own.split(";")
        assert labels == f"[{', '.join(map(text_of, left))}]"
        assert json.loads(probabilities) == pytest.approx(p, abs=1e-9)
