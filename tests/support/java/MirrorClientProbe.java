// What MirrorMaker 2's released client sees on a cluster, as one JSON document on stdout.
// Run by `java -cp <jars> MirrorClientProbe.java <bootstrap> <separator> <internal separator enabled> <source> <group>...`
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

public class MirrorClientProbe {
    private static final Duration TIMEOUT = Duration.ofSeconds(30);

    public static void main(String[] args) throws Exception {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", args[0]);
        config.put("replication.policy.separator", args[1]);
        config.put("replication.policy.internal.topic.separator.enabled", args[2]);
        String source = args[3];
        Map<String, String> found = new TreeMap<>();
        Map<String, String> translated = new TreeMap<>();
        Map<String, String> remote = new TreeMap<>();
        try (MirrorClient client = new MirrorClient(config)) {
            found.put("heartbeatTopics", strings(client.heartbeatTopics()));
            found.put("checkpointTopics", strings(client.checkpointTopics()));
            found.put("upstreamClusters", strings(client.upstreamClusters()));
            found.put("remoteTopics", strings(client.remoteTopics()));
            Map<String, String> hops = new TreeMap<>();
            for (String upstream : client.upstreamClusters()) {
                hops.put(upstream, Integer.toString(client.replicationHops(upstream)));
            }
            hops.put("nobody", Integer.toString(client.replicationHops("nobody")));
            found.put("replicationHops", object(hops));
            for (int i = 4; i < args.length; i++) {
                remote.put(args[i], offsets(client.remoteConsumerOffsets(args[i], source, TIMEOUT)));
                translated.put(args[i], offsets(RemoteClusterUtils.translateOffsets(config, source, args[i], TIMEOUT)));
            }
        }
        found.put("remoteConsumerOffsets", object(remote));
        found.put("translateOffsets", object(translated));
        System.out.println(object(found));
    }

    private static String offsets(Map<TopicPartition, OffsetAndMetadata> offsets) {
        Map<String, String> shown = new TreeMap<>();
        offsets.forEach((partition, position) -> shown.put(
            partition.topic() + "/" + partition.partition(),
            "[" + position.offset() + "," + quoted(position.metadata()) + "]"));
        return object(shown);
    }

    private static String strings(Collection<String> values) {
        List<String> shown = new ArrayList<>();
        new TreeSet<>(values).forEach(value -> shown.add(quoted(value)));
        return "[" + String.join(",", shown) + "]";
    }

    private static String object(Map<String, String> fields) {
        List<String> shown = new ArrayList<>();
        fields.forEach((name, value) -> shown.add(quoted(name) + ":" + value));
        return "{" + String.join(",", shown) + "}";
    }

    private static String quoted(String text) {
        StringBuilder shown = new StringBuilder("\"");
        for (char letter : text.toCharArray()) {
            shown.append(letter < ' ' || letter > '~' || letter == '"' || letter == '\\'
                ? String.format("\\u%04x", (int) letter) : String.valueOf(letter));
        }
        return shown.append('"').toString();
    }
}
