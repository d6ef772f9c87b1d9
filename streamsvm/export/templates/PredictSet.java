    /** The places of the labels that cannot be excluded, the most probable first. One: decided; several: ask a person. */
    public static int[] predictSet(double[] x) {
        return setBy(margins(x, 0.0));
    }

    /** The labels that cannot be excluded, the most probable first. One: decided; several: ask a person. */
    public static String[] predictSet(Map<String, @value@> x) {
        return Arrays.stream(setBy(margins(x))).mapToObj(place -> LABELS[place]).toArray(String[]::new);
    }

    private static int[] setBy(double[] f) {
        double[] p = probabilitiesBy(f);
        int best = firstLargest(p);
        return IntStream.range(0, p.length)
                .filter(i -> i == best || p[i] >= THRESHOLDS[i])
                .boxed()
                .sorted(Comparator.comparing((Integer i) -> i != best).thenComparing(i -> -p[i]))
                .mapToInt(i -> i)
                .toArray();
    }

