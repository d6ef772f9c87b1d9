import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.Stores;

/** Scores events with Kafka Streams: it follows the models that a trainer publishes with daemon.publish_json. */
public final class Follow {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Every instance reads the whole topic of models before its first event, and shares the events with the others. */
    static Topology topology(String models, String events, String scores) {
        Publications published = new Publications(Follow::object);
        var store = Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("pieces"), Serdes.String(), Serdes.ByteArray());
        return new Topology()
                .addGlobalStore(store.withLoggingDisabled(), "models", new StringDeserializer(), new ByteArrayDeserializer(),
                        models, "follow", () -> new Follower(published))
                .addSource("events", new ByteArrayDeserializer(), new ByteArrayDeserializer(), events)
                .addProcessor("score", () -> new Scorer(published), "events")
                .addSink("scores", scores, new ByteArraySerializer(), new ByteArraySerializer(), "score");
    }

    private static final class Follower extends ContextualProcessor<String, byte[], Void, Void> {
        private final Publications published;

        Follower(Publications published) {
            this.published = published;
        }

        @Override
        public void process(Record<String, byte[]> record) {
            published.put(record.key(), record.value());
        }
    }

    private static final class Scorer extends ContextualProcessor<byte[], byte[], byte[], byte[]> {
        private final Publications published;

        Scorer(Publications published) {
            this.published = published;
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            Map<String, ?> event = object(record.value());
            @SuppressWarnings("unchecked")
            Map<String, Number> x = (Map<String, Number>) event.get("x");
            Model model = published.models.get("json-p0"); // the model of partition 0
            if (model == null || x == null) return; // no model yet, or a label that comes alone
            Model.Said said = model.say(x);
            Map<String, Object> score = new HashMap<>();
            score.put("id", event.get("id"));
            score.put("label", said.left().get(0));
            score.put("labels", said.left());
            score.put("probabilities", said.probabilities());
            context().forward(record.withValue(bytes(score)));
        }
    }

    @SuppressWarnings("unchecked")
    static Map<String, ?> object(byte[] text) {
        try {
            return JSON.readValue(text, Map.class);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static byte[] bytes(Object value) {
        try {
            return JSON.writeValueAsBytes(value);
        } catch (JsonProcessingException error) {
            throw new UncheckedIOException(error);
        }
    }

    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "follow");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments.length > 0 ? arguments[0] : "127.0.0.1:9092");
        KafkaStreams streams = new KafkaStreams(topology("model", "events", "java-scores"), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }
}
