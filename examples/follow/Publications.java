import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;

/**
 * The newest model of each name, put together from the records of the topic log.model.
 *
 * <p>A model comes in pieces under the keys NAME/SLOT/NUMBER, and is complete with its manifest, NAME/manifest. Pieces
 * that do not match their manifest leave the model that there is.
 */
final class Publications {
    private final Map<String, byte[]> pieces = new ConcurrentHashMap<>();
    private final Map<String, Long> versions = new ConcurrentHashMap<>();
    private final Function<byte[], Map<String, ?>> read;
    final Map<String, Model> models = new ConcurrentHashMap<>();

    /** @param read what reads a JSON object */
    Publications(Function<byte[], Map<String, ?>> read) {
        this.read = read;
    }

    void put(String key, byte[] value) {
        String[] parts = key.split("/");
        if (!parts[0].startsWith("json-")) return; // for streamsvm's own scorers
        if (!parts[1].equals("manifest")) {
            if (value == null) pieces.remove(key);
            else pieces.put(key, value);
        } else if (value == null) {
            models.remove(parts[0]);
            versions.remove(parts[0]);
        } else take(parts[0], read.apply(value));
    }

    private void take(String name, Map<String, ?> manifest) {
        long version = (number(manifest, "epoch") << 40) + number(manifest, "ver");
        if (version <= versions.getOrDefault(name, -1L)) return;
        ByteArrayOutputStream whole = new ByteArrayOutputStream();
        for (int i = 0; i < number(manifest, "chunks"); i++) {
            byte[] piece = pieces.remove(name + "/" + number(manifest, "slot") + "/" + i);
            if (piece != null) whole.writeBytes(piece);
        }
        if (!sha256(whole.toByteArray()).equals(manifest.get("sha256"))) return;
        versions.put(name, version);
        models.put(name, new Model(read.apply(whole.toByteArray())));
    }

    private static long number(Map<String, ?> manifest, String name) {
        return ((Number) manifest.get(name)).longValue();
    }

    private static String sha256(byte[] bytes) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }
}
