"""Java: compiled by javac, it says what the description says."""

import numpy as np
import pytest
from described import Twin
from exported import MODELS, answers_of, assert_alike, engine_rounding, model_of, rows_of
from programs import java

from streamsvm.export import to_java, to_json

ASK = """
import java.io.DataInputStream;
import java.io.FileInputStream;

public final class Ask {
    private static void print(double[] values) {
        StringBuilder line = new StringBuilder();
        for (double value : values) line.append(value).append(' ');
        System.out.println(line);
    }

    public static void main(String[] names) throws Exception {
        for (String name : names) ask(Class.forName(name), name);
    }

    private static void ask(Class<?> model, String name) throws Exception {
        String[] features = (String[]) model.getField("FEATURES").get(null);
        try (DataInputStream in = new DataInputStream(new FileInputStream(name + ".rows"))) {
            for (int n = in.readInt(); n > 0; n--) {
                double[] x = new double[features.length];
                java.util.Map<String, Double> map = new java.util.HashMap<>();
                for (int j = 0; j < x.length; j++) {
                    x[j] = in.readDouble();
                    map.put(features[j], x[j]);
                }
                print((double[]) model.getMethod("values", double[].class).invoke(null, x));
                print((double[]) model.getMethod("probabilities", java.util.Map.class).invoke(null, map));
                System.out.println(model.getMethod("decide", double[].class).invoke(null, x));
            }
        }
    }
}
"""


@pytest.mark.long
def test_java_decides_as_the_description_says(tmp_path):
    """All models at once: a compiler that starts takes a second."""
    twins, names = {}, [f"Model{i}" for i in range(len(MODELS))]
    for own, name in zip(names, MODELS, strict=True):
        rows, _ = rows_of(name, 100)
        twins[name] = twin = Twin(to_json(model_of(name)))
        (tmp_path / f"{own}.java").write_text(to_java(model_of(name), own), encoding="utf-8")
        X = twin.table(rows)
        (tmp_path / f"{own}.rows").write_bytes(len(X).to_bytes(4, "big") + X.astype(">f8").tobytes())
    (tmp_path / "Ask.java").write_text(ASK)
    java(tmp_path, "javac", "-Xlint:all", "-Werror", "Ask.java", *(f"{own}.java" for own in names))
    lines = java(tmp_path, "java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "Ask", *names).splitlines()
    for i, (name, twin) in enumerate(twins.items()):
        own = lines[300 * i : 300 * i + 300]
        numbers = [np.array([line.split() for line in own[k::3]], float) for k in range(2)]
        found = (*numbers, [twin.told["labels"][int(place)] for place in own[2::3]])
        assert_alike(found, twin.answers(rows_of(name, 100)[0]), 1e-9)
        assert_alike(found, answers_of(name, 100), engine_rounding(name))


def test_a_class_may_have_a_package(tmp_path):
    text = to_java(model_of("scaled"), "com.example.Fraud")
    assert text.startswith("package com.example;\n")
    (tmp_path / "Fraud.java").write_text(text)
    java(tmp_path, "javac", "-d", ".", "Fraud.java")
    assert (tmp_path / "com" / "example" / "Fraud.class").exists()
    with pytest.raises(ValueError, match="must begin with a letter"):
        to_java(model_of("scaled"), "com..Fraud")
