import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A model, as docs/export.md describes it: of two classes, or one machine for each class. Threads may share it. */
final class Model {
    private final Map<String, Integer> places = new HashMap<>();
    private final double[] shift, factor, missing, entries, gamma, norms;
    private final int[] starts, columns;
    private final double limit, degree, coef0, threshold;
    private final String kernel;
    private final boolean isOfTwo;
    private final double[][] coefficients, slopes;
    private final double[] bias, thresholds, correction;
    final List<?> labels;

    /** @param told the JSON object, as Map, List, String, Number, Boolean and null */
    Model(Map<String, ?> told) {
        if (!"streamsvm model".equals(told.get("format")) || numberOf(told.get("version")) != 1)
            throw new IllegalArgumentException("this is no model of version 1");
        isOfTwo = "threshold".equals(told.get("decision"));
        if (told.get("records") != null || !isOfTwo && !"one-vs-rest".equals(told.get("decision")))
            throw new IllegalArgumentException("this program takes numbers, and no model of pairs");
        List<?> features = (List<?>) told.get("features"), machines = (List<?>) told.get("machines");
        for (Object feature : features) places.put(((Map<?, ?>) feature).get("name").toString(), places.size());
        shift = column(features, "shift");
        factor = column(features, "factor");
        missing = column(features, "missing");
        limit = told.get("limit") == null ? Double.POSITIVE_INFINITY : numberOf(told.get("limit"));
        Map<?, ?> kernels = (Map<?, ?>) told.get("kernel"), members = (Map<?, ?>) told.get("members");
        kernel = (String) kernels.get("name");
        degree = numberOf(kernels.get("degree"));
        coef0 = numberOf(kernels.get("coef0"));
        starts = ((List<?>) members.get("starts")).stream().mapToInt(v -> (int) numberOf(v)).toArray();
        columns = ((List<?>) members.get("columns")).stream().mapToInt(v -> (int) numberOf(v)).toArray();
        entries = numbers(members.get("values"));
        gamma = numbers(members.get("gamma"));
        norms = new double[gamma.length];
        for (int s = 0; s < norms.length; s++)
            for (int i = starts[s]; i < starts[s + 1]; i++) norms[s] += entries[i] * entries[i];
        coefficients = machines.stream().map(m -> numbers(((Map<?, ?>) m).get("coefficients"))).toArray(double[][]::new);
        slopes = machines.stream().map(m -> numbers(((Map<?, ?>) m).get("slopes"))).toArray(double[][]::new);
        bias = column(machines, "bias");
        labels = (List<?>) told.get("labels");
        threshold = numberOf(told.get("threshold"));
        Map<?, ?> guarantee = (Map<?, ?>) told.get("guarantee");
        thresholds = guarantee == null ? null : numbers(guarantee.get("thresholds"));
        correction = guarantee == null || guarantee.get("correction") == null ? null : numbers(guarantee.get("correction"));
    }

    private static double numberOf(Object value) {
        return ((Number) value).doubleValue();
    }

    private static double[] numbers(Object list) {
        return ((List<?>) list).stream().mapToDouble(Model::numberOf).toArray();
    }

    private static double[] column(List<?> rows, String name) {
        return rows.stream().mapToDouble(row -> numberOf(((Map<?, ?>) row).get(name))).toArray();
    }

    private static double cut(double value, double most) {
        return Math.min(Math.max(value, -most), most);
    }

    private static double sigmoid(double t) {
        return 1.0 / (1.0 + Math.exp(-t));
    }

    /** f of each machine. */
    private double[] margins(Map<String, ? extends Number> x) {
        double[] z = missing.clone(), f = bias.clone();
        double norm = 0.0;
        for (Map.Entry<String, ? extends Number> entry : x.entrySet()) {
            Integer place = places.get(entry.getKey());
            if (place != null) z[place] = entry.getValue().doubleValue();
            else norm += Math.pow(cut(entry.getValue().doubleValue(), limit), 2);
        }
        for (int j = 0; j < z.length; j++) {
            z[j] = cut((z[j] - shift[j]) * factor[j], limit);
            norm += z[j] * z[j];
        }
        for (int s = 0; s < norms.length; s++) {
            double product = 0.0;
            for (int i = starts[s]; i < starts[s + 1]; i++) product += z[columns[i]] * entries[i];
            double base = gamma[s] * product + coef0, k = product;
            if (kernel.equals("rbf")) k = Math.exp(-gamma[s] * Math.max(norm + norms[s] - 2.0 * product, 0.0));
            if (kernel.equals("poly")) k = Math.pow(base, degree);
            if (kernel.equals("sigmoid")) k = Math.tanh(base);
            for (int m = 0; m < f.length; m++) f[m] += coefficients[m][s] * k;
        }
        return f;
    }

    /** What is said of an example: the labels that cannot be excluded, and the probability of each of `labels`. */
    record Said(List<?> left, double[] probabilities) {
        boolean isDecided() {
            return left.size() == 1;
        }
    }

    Said say(Map<String, ? extends Number> x) {
        double[] f = margins(x), p = new double[labels.size()];
        for (int m = 0; m < f.length; m++) p[p.length - f.length + m] = sigmoid(cut(slopes[m][f[m] > 0 ? 1 : 0] * f[m], 500));
        if (isOfTwo) p[0] = 1.0 - p[1];
        double total = 0.0;
        for (double own : p) total += own;
        for (int c = 0; c < p.length; c++) p[c] /= total;
        if (correction != null) {
            p[1] = sigmoid(cut(correction[0] + correction[1] * cut(Math.log(p[1] / p[0]), 8.0), 12.0));
            p[0] = 1.0 - p[1];
        }
        int best = isOfTwo && thresholds == null && f[0] > threshold ? 1 : 0;
        if (!isOfTwo || thresholds != null) for (int c = 1; c < p.length; c++) if (p[c] > p[best]) best = c;
        List<Integer> left = new ArrayList<>();
        for (int c = 0; c < p.length; c++) if (c != best && thresholds != null && p[c] >= thresholds[c]) left.add(c);
        left.sort(Comparator.comparing(c -> -p[c]));
        left.add(0, best);
        return new Said(left.stream().map(labels::get).toList(), p);
    }
}
