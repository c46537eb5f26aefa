import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Writes a record for each timestamp given, its value the number as text: Java's client can send 0, librdkafka cannot. */
class TimedRecords {
    public static void main(String[] arguments) throws Exception {
        String text = StringSerializer.class.getName();
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", arguments[0], "acks", "all", "key.serializer", text, "value.serializer", text);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            for (int i = 2; i < arguments.length; i++) {
                producer.send(new ProducerRecord<>(arguments[1], 0, Long.valueOf(arguments[i]), "k", arguments[i])).get();
            }
        }
    }
}
