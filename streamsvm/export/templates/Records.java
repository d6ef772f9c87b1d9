

    /** From a raw record to numbers, as streamsvm's Records makes them; docs/records.md has the rules. */
    private static final class Records {
        private static final boolean INDICATORS = @indicators@;
        private static final int WIDTH = @width@, OWN_VALUES = @own_values@, SHARED = @shared@;
        private static final String THOUSANDS = DATA.texts()[0];
        private static final Pattern GROUPED = Pattern.compile(
                "[+-]?\\d{1,3}(?:S\\d{2,3})*S\\d{3}(?:\\.\\d*)?".replace("S", Pattern.quote(THOUSANDS)));
        private static final Pattern NUMBER = Pattern.compile("[+-]?(\\d+\\.?\\d*|\\.\\d+)([eE][+-]?\\d+)?");
        private static final Pattern ISO = Pattern.compile("(\\d{4})([-/])(\\d\\d)\\2(\\d\\d)([T ](\\d\\d):(\\d\\d)"
                + "(:(\\d\\d)(\\.\\d+)?)?( ?(Z|UTC|([+-])(\\d\\d)(:?(\\d\\d))?))?)?");
        private static final Pattern WORDS = Pattern.compile("[\\p{L}\\p{N}_]+");
        private static final Field[] FIELDS = new Field[DATA.integers()[0]];

        static {
            for (int i = 0; i < FIELDS.length; i++) FIELDS[i] = new Field();
        }

        /** A field, as the data describe it. */
        private static final class Field {
            private final String[] names = DATA.texts();
            private final String name = names[0], kind = names[1];
            private final Set<String> values = Set.of(DATA.texts());
            private final double[] guesses = DATA.doubles();
            private final int[] counts = DATA.integers();
            private final boolean hasClock = counts[0] != 0, isRare = counts[2] != 0;
            private final int length = counts[1];
        }

        /** A time: seconds since 1970, and what its clock shows. */
        private static final class Moment {
            private final double seconds;
            private final LocalDateTime clock;

            Moment(double seconds, long east) {
                this.seconds = Math.rint(seconds * 1e6) / 1e6;
                this.clock = LocalDateTime.ofEpochSecond((long) Math.floor(this.seconds) + east, 0, ZoneOffset.UTC);
            }

            static Moment of(double seconds, long east) {
                boolean isWithin = seconds >= -62135596800.0 && seconds < 253402300800.0;
                return isWithin ? new Moment(seconds, east) : null;
            }
        }

        static Map<String, Double> numbersOf(Map<String, ?> record) {
            Map<String, Object> given = new HashMap<>();
            flatten(record, "", 16, given);
            Map<String, Double> out = new LinkedHashMap<>();
            for (Field field : FIELDS) {
                if (field.isRare && !given.containsKey(field.name)) continue;
                Object value = read(field, given.get(field.name));
                write(field, value, out);
                if (value == null && INDICATORS) out.put("~" + field.name + "?", 1.0);
            }
            return out;
        }

        private static void flatten(Map<?, ?> record, String prefix, int depth, Map<String, Object> given) {
            for (Map.Entry<?, ?> entry : record.entrySet()) {
                String name = prefix + entry.getKey();
                if (entry.getValue() instanceof Map && depth > 0)
                    flatten((Map<?, ?>) entry.getValue(), name + ".", depth - 1, given);
                else if (given.containsKey(name))
                    throw new IllegalArgumentException("two fields of the record are named " + name);
                else given.put(name, entry.getValue());
            }
        }

        /** A value as one of the field's kind; null if it is missing or of another kind. */
        private static Object read(Field field, Object value) {
            if (value == null) return null;
            switch (field.kind) {
                case "category":
                    return word(value);
                case "text":
                    return text(value);
                case "time":
                    return time(value);
                case "list":
                    return list(field, value);
                case "number":
                    return number(value);
                default:
                    Double since = number(value);
                    double unit = field.kind.equals("epoch_s") ? 1.0 : field.kind.equals("epoch_ms") ? 1e3 : 1e6;
                    return since == null ? null : Moment.of(since / unit, 0);
            }
        }

        private static Double number(Object value) {
            if (value instanceof Boolean) return (Boolean) value ? 1.0 : 0.0;
            double v;
            if (value instanceof String) {
                String written = ((String) value).strip();
                if (!THOUSANDS.isEmpty() && GROUPED.matcher(written).matches()) written = written.replace(THOUSANDS, "");
                if (!NUMBER.matcher(written).matches()) return null;
                v = Double.parseDouble(written);
            } else if (value instanceof Number) v = ((Number) value).doubleValue();
            else return null;
            return Math.abs(v) < 1e18 ? (Double) v : null;
        }

        private static double[] list(Field field, Object value) {
            if (!(value instanceof List) || ((List<?>) value).size() != field.length || field.length == 0) return null;
            double[] numbers = new double[field.length];
            for (int i = 0; i < numbers.length; i++) {
                Object part = ((List<?>) value).get(i);
                Double v = part instanceof String ? null : number(part);
                if (v == null) return null;
                numbers[i] = v;
            }
            return numbers;
        }

        private static Moment time(Object value) {
            Matcher found = value instanceof String ? ISO.matcher(((String) value).strip()) : null;
            if (found == null || !found.matches()) return null;
            int[] parts = {part(found, 1), part(found, 3), part(found, 4), part(found, 6), part(found, 7), part(found, 9)};
            int hours = part(found, 14), minutes = part(found, 16);
            if (parts[0] == 0 || hours > 23 || minutes > 59) return null;
            try {
                LocalDateTime wall = LocalDateTime.of(parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]);
                long east = (hours * 3600L + minutes * 60L) * ("-".equals(found.group(13)) ? -1 : 1);
                String digits = found.group(10) == null ? ".0" : found.group(10);
                double fraction = Double.parseDouble("0" + digits.substring(0, Math.min(digits.length(), 7)));
                return Moment.of(wall.toEpochSecond(ZoneOffset.UTC) + fraction - east, east);
            } catch (DateTimeException error) {
                return null;
            }
        }

        private static int part(Matcher found, int group) {
            return found.group(group) == null ? 0 : Integer.parseInt(found.group(group));
        }

        /** A category's value, as Python writes it. */
        private static String word(Object value) {
            String written = value instanceof List ? text(value) : value instanceof String ? (String) value : null;
            if (value instanceof Boolean) written = (Boolean) value ? "True" : "False";
            if (value instanceof Double || value instanceof Float) written = pythonNumber(((Number) value).doubleValue());
            else if (value instanceof Number) written = value.toString();
            if (written == null || written.isBlank()) return null;
            written = written.strip();
            if (written.codePointCount(0, written.length()) <= 64) return written;
            String start = written.substring(0, written.offsetByCodePoints(0, 40));
            return start + String.format("...%08x", checksum(written));
        }

        private static String pythonNumber(double value) {
            if (Double.isNaN(value)) return null;
            if (Double.isInfinite(value)) return value > 0.0 ? "inf" : "-inf";
            if (value == Math.rint(value)) return new BigDecimal(value).toBigInteger().toString();
            String written = Double.toString(value);
            if (Math.abs(value) >= 1e-4) return new BigDecimal(written).toPlainString();
            String[] parts = written.split("E-");
            return parts[0].replaceFirst("\\.0$", "") + "e-" + (parts[1].length() < 2 ? "0" : "") + parts[1];
        }

        private static String text(Object value) {
            if (value instanceof List) {
                StringJoiner joined = new StringJoiner(" ");
                for (Object part : (List<?>) value) {
                    if (!(part instanceof String)) return null;
                    joined.add((String) part);
                }
                value = joined.toString();
            }
            return value instanceof String && !((String) value).isBlank() ? ((String) value).strip() : null;
        }

        private static long checksum(String written) {
            CRC32 crc = new CRC32();
            crc.update(written.getBytes(StandardCharsets.UTF_8));
            return crc.getValue();
        }

        private static void write(Field field, Object value, Map<String, Double> out) {
            String name = field.name;
            boolean isKnown = value != null || field.guesses.length > 0;
            if (field.kind.equals("category")) {
                if (value == null) out.put("~" + name + "?", 1.0);
                else if (field.values.contains(value) || field.values.size() < OWN_VALUES)
                    out.put("~" + name + "=" + value, 1.0);
                else out.put("~" + name + "#" + checksum((String) value) % SHARED, 1.0);
            } else if (field.kind.equals("text")) {
                writeText(field, (String) value, out);
            } else if (isKnown && field.kind.equals("number")) {
                out.put(name, value == null ? field.guesses[0] : (Double) value);
            } else if (isKnown && field.kind.equals("list")) {
                double[] numbers = value == null ? field.guesses : (double[]) value;
                for (int j = 0; j < numbers.length; j++) out.put(name + "." + j, numbers[j]);
            } else if (isKnown) {
                Moment t = value == null ? new Moment(field.guesses[0] * 86400.0, 0) : (Moment) value;
                out.put(name + ".days", t.seconds / 86400.0);
                if (field.hasClock) turn(name + ".hour", (t.clock.getHour() + t.clock.getMinute() / 60.0) / 24.0, out);
                turn(name + ".weekday", (t.clock.getDayOfWeek().getValue() - 1) / 7.0, out);
                turn(name + ".yearday", t.clock.getDayOfYear() / 366.0, out);
            }
        }

        private static void turn(String name, double share, Map<String, Double> out) {
            out.put(name + ".sin", Math.sin(2.0 * Math.PI * share));
            out.put(name + ".cos", Math.cos(2.0 * Math.PI * share));
        }

        private static void writeText(Field field, String text, Map<String, Double> out) {
            double[] numbers = field.guesses;
            if (text != null) {
                int n = text.codePointCount(0, text.length());
                if (n > 10_000) text = text.substring(0, text.offsetByCodePoints(0, n = 10_000));
                putHashed(field, text, out);
                double digits = text.codePoints().filter(c -> Character.isDigit(c) || isSmallDigit(c)).count();
                double capitals = text.codePoints().filter(Character::isUpperCase).count();
                numbers = new double[] {Math.log1p(n), digits / n, capitals / n};
            }
            if (numbers.length == 0) return;
            out.put(field.name + ".length", numbers[0]);
            out.put(field.name + ".digits", numbers[1]);
            out.put(field.name + ".capitals", numbers[2]);
        }

        private static boolean isSmallDigit(int c) {
            return c == 0xb2 || c == 0xb3 || c == 0xb9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089);
        }

        /** Hashed words and n-grams: FNV-1a, mixed. */
        private static void putHashed(Field field, String text, Map<String, Double> out) {
            StringJoiner words = new StringJoiner(" ", " ", " ");
            Matcher found = WORDS.matcher(text.toLowerCase(Locale.ROOT));
            boolean isEmpty = true;
            for (; found.find(); isEmpty = false) words.add(found.group());
            if (isEmpty) return;
            byte[] letters = words.toString().getBytes(StandardCharsets.UTF_8);
            Map<Integer, int[]> counts = new LinkedHashMap<>();
            int basis = 0x811c9dc5, h = basis;
            for (int t = 1; t < letters.length; t++) {
                if (letters[t] != ' ') h = step(h, letters[t]);
                else {
                    note(counts, 0, h);
                    h = basis;
                }
            }
            for (int size = 3; size <= 4; size++)
                for (int t = 0; t + size <= letters.length; t++) {
                    h = basis + size;
                    for (int k = t; k < t + size; k++) h = step(h, letters[k]);
                    note(counts, 1, h);
                }
            double a = factor(counts, 0, 0.6), b = factor(counts, 1, 1.0 - 0.6);
            counts.forEach((j, n) -> out.put("~" + field.name + "#" + j, a * Math.log1p(n[0]) + b * Math.log1p(n[1])));
        }

        private static int step(int h, byte letter) {
            return (h ^ (letter & 0xff)) * 0x01000193;
        }

        private static void note(Map<Integer, int[]> counts, int kind, int h) {
            h = (h ^ (h >>> 16)) * 0x85ebca6b;
            counts.computeIfAbsent(Integer.remainderUnsigned(h ^ (h >>> 13), WIDTH), j -> new int[2])[kind]++;
        }

        private static double factor(Map<Integer, int[]> counts, int kind, double share) {
            double total = counts.values().stream().mapToDouble(n -> Math.pow(Math.log1p(n[kind]), 2)).sum();
            return total > 0.0 ? Math.sqrt(9.0 * share / total) : 0.0;
        }
    }
