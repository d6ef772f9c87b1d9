@package@
@imports@import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;

/**
 * A classifier, written by streamsvm @version@. Java 11; it needs no other class, and threads may share it.
 *
 * <p>x has the features in the order of {@link #FEATURES}, or by their names. A feature that is absent, null or NaN is missing,
 * and the model's guess stands for it. A map may have features that the model does not know, as the model itself takes
 * them. What is infinite is an IllegalArgumentException.@usage@
 */
public final class @name@ {
    private static final Data DATA = new Data(@data@);

    private static final String KERNEL = "@kernel@", DECISION = "@decision@";
    private static final int DEGREE = @degree@;
    private static final double COEF0 = @coef0@, LIMIT = @limit@, THRESHOLD = @threshold@;

    /** The names of the features. */
    public static final String[] FEATURES = DATA.texts();

    /** The labels as texts. */
    public static final String[] LABELS = DATA.texts();

    private static final double[] SHIFT = DATA.doubles(), FACTOR = DATA.doubles(), MISSING = DATA.doubles();
    private static final double[] THRESHOLDS = DATA.doubles(), CORRECTION = DATA.doubles();
    private static final double[] BIAS = DATA.doubles(), SLOPES = DATA.doubles(), COEFFICIENTS = DATA.doubles();
    // Member s has the features COLUMNS[STARTS[s]], ..., COLUMNS[STARTS[s + 1] - 1].
    private static final int[] STARTS = DATA.integers(), COLUMNS = DATA.integers();
    private static final double[] ENTRIES = DATA.doubles(), NORMS = DATA.doubles(), GAMMA = DATA.doubles();
    private static final Map<String, Integer> PLACES = new HashMap<>();

    static {
        for (int j = 0; j < FEATURES.length; j++) PLACES.put(FEATURES[j], j);
    }

    private @name@() {}

    /** The place of the label in LABELS. */
    public static int decide(double[] x) {
        return decideBy(margins(x, 0.0));
    }

    /** The label. */
    public static String predict(Map<String, @value@> x) {
        return LABELS[decideBy(margins(x))];
    }

    /** The decision values: of the one machine, or of each of LABELS. */
    public static double[] values(double[] x) {
        return valuesBy(margins(x, 0.0));
    }

    /** The decision values: of the one machine, or of each of LABELS. */
    public static double[] values(Map<String, @value@> x) {
        return valuesBy(margins(x));
    }

    /** The probabilities of LABELS. */
    public static double[] probabilities(double[] x) {
        return probabilitiesBy(margins(x, 0.0));
    }

    /** The probabilities of LABELS. */
    public static double[] probabilities(Map<String, @value@> x) {
        return probabilitiesBy(margins(x));
    }

@predict_set@    private static double[] margins(Map<String, @value@> x) {
        double[] raw = MISSING.clone();
        double unknown = 0.0;
        for (Map.Entry<String, ? extends Number> entry : @numbers_of_x@.entrySet()) {
            Integer place = PLACES.get(entry.getKey());
            double value = entry.getValue() == null ? Double.NaN : entry.getValue().doubleValue();
            if (Double.isNaN(value)) continue;
            finite(entry.getKey(), value);
            if (place == null) unknown += cut(value) * cut(value);
            else raw[place] = value;
        }
        return margins(raw, unknown);
    }

    /** f of each machine. */
    private static double[] margins(double[] x, double unknown) {
        if (x.length != FEATURES.length)
            throw new IllegalArgumentException(
                    "x has " + x.length + " numbers; it must have " + FEATURES.length + ", in the order of FEATURES");
        double[] z = new double[x.length], f = BIAS.clone();
        double norm = unknown;
        for (int j = 0; j < z.length; j++) {
            double value = Double.isNaN(x[j]) ? MISSING[j] : finite(FEATURES[j], x[j]);
            z[j] = cut((value - SHIFT[j]) * FACTOR[j]);
            norm += z[j] * z[j];
        }
        for (int s = 0; s < NORMS.length; s++) {
            double product = 0.0;
            for (int i = STARTS[s]; i < STARTS[s + 1]; i++) product += z[COLUMNS[i]] * ENTRIES[i];
            double k = kernelValue(product, norm, s);
            for (int m = 0; m < f.length; m++) f[m] += COEFFICIENTS[m * NORMS.length + s] * k;
        }
        for (double value : f)
            if (!Double.isFinite(value))
                throw new IllegalArgumentException("a decision value is not finite: the features are too large");
        return f;
    }

    private static double kernelValue(double product, double norm, int s) {
        if (KERNEL.equals("rbf")) return Math.exp(-GAMMA[s] * Math.max(norm + NORMS[s] - 2.0 * product, 0.0));
        if (KERNEL.equals("linear")) return product;
        double base = GAMMA[s] * product + COEF0;
        return KERNEL.equals("poly") ? Math.pow(base, DEGREE) : Math.tanh(base);
    }

    private static double finite(String name, double value) {
        if (!Double.isFinite(value))
            throw new IllegalArgumentException("x has " + value + " as \"" + name + "\"; features must be finite numbers");
        return value;
    }

    private static double cut(double value) {
        return Math.min(Math.max(value, -LIMIT), LIMIT);
    }

    /** The probability that machine m gives its first side. */
    private static double alone(int m, double f) {
        double t = SLOPES[2 * m + (f > 0.0 ? 1 : 0)] * f;
        return 1.0 / (1.0 + Math.exp(-Math.min(Math.max(t, -500.0), 500.0)));
    }

    private static int firstLargest(double[] values) {
        int best = 0;
        for (int i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
        return best;
    }

    /** The probabilities of labels that are told from all others. */
    private static double[] shares(double[] f) {
        double[] p = new double[f.length];
        for (int m = 0; m < f.length; m++) p[m] = alone(m, f[m]);
        double total = Arrays.stream(p).sum();
        for (int m = 0; m < f.length; m++) p[m] /= total;
        return p;
    }

    /** The votes for each label; a value of 0 is a vote for the second label of a pair, or for the first. */
    private static double[] votes(double[] f, boolean zeroForFirst) {
        double[] votes = new double[LABELS.length];
        for (int i = 0, m = 0; i < votes.length; i++)
            for (int j = i + 1; j < votes.length; j++, m++)
                votes[f[m] > 0.0 || (f[m] == 0.0 && zeroForFirst) ? i : j] += 1.0;
        return votes;
    }

    private static int decideBy(double[] f) {
        return THRESHOLDS.length > 0 ? firstLargest(probabilitiesBy(f)) : byRule(f);
    }

    private static int byRule(double[] f) {
        if (DECISION.equals("threshold")) return f[0] > THRESHOLD ? 1 : 0;
        return firstLargest(DECISION.equals("one-vs-rest") ? shares(f) : votes(f, false));
    }

    private static double[] valuesBy(double[] f) {
        if (!DECISION.equals("one-vs-one")) return f;
        double[] values = votes(f, true), sums = new double[values.length];
        for (int i = 0, m = 0; i < sums.length; i++)
            for (int j = i + 1; j < sums.length; j++, m++) {
                sums[i] += f[m];
                sums[j] -= f[m];
            }
        for (int i = 0; i < sums.length; i++) values[i] += sums[i] / (3.0 * (Math.abs(sums[i]) + 1.0));
        return values;
    }

    private static double[] probabilitiesBy(double[] f) {
        double[] p = {1.0 - alone(0, f[0]), alone(0, f[0])};
        if (DECISION.equals("one-vs-rest")) p = shares(f);
        if (DECISION.equals("one-vs-one")) p = ledBy(byRule(f), coupled(f));
        if (CORRECTION.length > 0) {
            double t = Math.min(Math.max(Math.log(p[1] / p[0]), -8.0), 8.0);
            t = Math.min(Math.max(CORRECTION[0] + CORRECTION[1] * t, -12.0), 12.0);
            p = new double[] {1.0 - 1.0 / (1.0 + Math.exp(-t)), 1.0 / (1.0 + Math.exp(-t))};
        }
        return p;
    }

    /** Probabilities of all labels from those of all pairs: the second method of Wu, Lin and Weng (2004). */
    private static double[] coupled(double[] f) {
        int n = LABELS.length;
        double[][] Q = new double[n][n];
        double[] p = new double[n], Qp = new double[n];
        for (int i = 0, m = 0; i < n; i++)
            for (int j = i + 1; j < n; j++, m++) {
                double r = Math.min(Math.max(alone(m, f[m]), 1e-7), 1.0 - 1e-7);
                Q[i][i] += (1.0 - r) * (1.0 - r);
                Q[j][j] += r * r;
                Q[i][j] = Q[j][i] = -r * (1.0 - r);
            }
        Arrays.fill(p, 1.0 / n);
        for (int sweep = 0; sweep < 1000; sweep++) {
            double pQp = 0.0, worst = 0.0;
            for (int i = 0; i < n; i++) {
                Qp[i] = 0.0;
                for (int j = 0; j < n; j++) Qp[i] += Q[i][j] * p[j];
                pQp += p[i] * Qp[i];
            }
            for (int i = 0; i < n; i++) worst = Math.max(worst, Math.abs(Qp[i] - pQp));
            if (worst < 1e-9) break;
            for (int i = 0; i < n; i++) {
                double change = (pQp - Qp[i]) / Q[i][i], total = 1.0 + change;
                pQp = (pQp + change * (2.0 * Qp[i] + change * Q[i][i])) / (total * total);
                p[i] += change;
                for (int j = 0; j < n; j++) {
                    Qp[j] = (Qp[j] + change * Q[j][i]) / total;
                    p[j] /= total;
                }
            }
        }
        return p;
    }

    /** The nearest probabilities of which that of `best` is the largest: it shares with all above a common level. */
    private static double[] ledBy(int best, double[] p) {
        if (firstLargest(p) == best) return p;
        double own = p[best], level = own, total = own;
        p[best] = Double.NEGATIVE_INFINITY;
        double[] rising = p.clone();
        Arrays.sort(rising);
        for (int i = rising.length - 1; i > 0; i--) {
            total += rising[i];
            level = Math.max(level, total / (rising.length - i + 1));
        }
        for (int i = 0; i < p.length; i++) p[i] = Math.min(p[i], level);
        p[best] = Math.nextUp(level);
        return p;
    }

    /** Arrays in base64, one after the other; a class file holds a text, but no large array. */
    private static final class Data {
        private final ByteBuffer bytes;

        Data(String... parts) {
            bytes = ByteBuffer.wrap(Base64.getDecoder().decode(String.join("", parts))).order(ByteOrder.LITTLE_ENDIAN);
        }

        double[] doubles() {
            double[] values = new double[bytes.getInt()];
            for (int i = 0; i < values.length; i++) values[i] = bytes.getDouble();
            return values;
        }

        int[] integers() {
            int[] values = new int[bytes.getInt()];
            for (int i = 0; i < values.length; i++) values[i] = bytes.getInt();
            return values;
        }

        String[] texts() {
            String[] values = new String[bytes.getInt()];
            for (int i = 0; i < values.length; i++) {
                byte[] text = new byte[bytes.getInt()];
                bytes.get(text);
                values[i] = new String(text, StandardCharsets.UTF_8);
            }
            return values;
        }
    }@records@
}
