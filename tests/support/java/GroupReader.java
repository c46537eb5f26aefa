// Real consumers of Kafka's Java client: each joins its group, reads, commits, and leaves. What they read goes to stdout.
// Run by `java -cp <jars> GroupReader.java <bootstrap> <auto.offset.reset> (<group> <topic> <limit>)...`; a limit below 0
// is none: such a group reads to the end. Values are numbers. Prints {"group": {"partition": [[first, last], ...]}}, in
// the order of reading, a range for numbers that follow each other by one.
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

public class GroupReader {
    private static final long SILENCE_MS = 60_000;

    public static void main(String[] args) {
        StringJoiner groups = new StringJoiner(",", "{", "}");
        for (int i = 2; i < args.length; i += 3) {
            groups.add("\"" + args[i] + "\":" + read(args[0], args[1], args[i], args[i + 1], Long.parseLong(args[i + 2])));
        }
        System.out.println(groups);
    }

    private static String read(String bootstrap, String reset, String group, String topic, long limit) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("group.id", group);
        config.put("auto.offset.reset", reset);
        config.put("enable.auto.commit", "false");
        config.put("isolation.level", "read_committed");
        config.put("max.poll.records", "10000");
        Map<TopicPartition, Long> next = new HashMap<>();
        Map<Integer, List<long[]>> ranges = new TreeMap<>();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            long count = 0;
            long silentSince = System.currentTimeMillis();
            while (count != limit && !isAtEnd(consumer)) {
                Iterable<ConsumerRecord<String, String>> records = consumer.poll(Duration.ofMillis(200));
                for (TopicPartition partition : consumer.assignment()) {
                    if (!next.containsKey(partition)) {
                        OffsetAndMetadata committed = consumer.committed(java.util.Set.of(partition)).get(partition);
                        next.put(partition, committed == null ? 0L : committed.offset());
                    }
                }
                for (ConsumerRecord<String, String> record : records) {
                    if (count == limit) {
                        break;
                    }
                    count++;
                    note(ranges.computeIfAbsent(record.partition(), key -> new ArrayList<>()), record.value());
                    next.put(new TopicPartition(record.topic(), record.partition()), record.offset() + 1);
                    silentSince = System.currentTimeMillis();
                }
                if (System.currentTimeMillis() - silentSince > SILENCE_MS) {
                    throw new IllegalStateException("group " + group + " gets nothing of " + topic + " after " + count);
                }
            }
            Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
            next.forEach((partition, offset) -> positions.put(partition, new OffsetAndMetadata(offset)));
            consumer.commitSync(positions);
        }
        StringJoiner partitions = new StringJoiner(",", "{", "}");
        ranges.forEach((partition, found) -> {
            StringJoiner shown = new StringJoiner(",", "[", "]");
            found.forEach(range -> shown.add(Arrays.toString(range)));
            partitions.add("\"" + partition + "\":" + shown);
        });
        return partitions.toString();
    }

    private static boolean isAtEnd(KafkaConsumer<?, ?> consumer) {
        if (consumer.assignment().isEmpty()) {
            return false;
        }
        Map<TopicPartition, Long> ends = consumer.endOffsets(consumer.assignment());
        return ends.entrySet().stream().allMatch(end -> consumer.position(end.getKey()) >= end.getValue());
    }

    private static void note(List<long[]> ranges, String value) {
        long number = Long.parseLong(value);
        long[] last = ranges.isEmpty() ? null : ranges.get(ranges.size() - 1);
        if (last != null && last[1] + 1 == number) {
            last[1] = number;
        } else {
            ranges.add(new long[] {number, number});
        }
    }
}
