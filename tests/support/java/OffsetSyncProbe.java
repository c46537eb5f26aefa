// What MirrorMaker 2's own reader of offset syncs, by which its checkpoints translate positions, makes of them.
// Run by `java -cp <jars> OffsetSyncProbe.java <location> <source alias> <its address> <target alias> <its address> <topic>
// <partition> <offset>...`. Prints the target positions, -1 for one that it cannot tell, as a JSON list.
import java.lang.reflect.Constructor;
import java.util.HashMap;
import java.util.Map;
import java.util.StringJoiner;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.MirrorCheckpointConfig;
import org.apache.kafka.connect.mirror.OffsetSyncStore;

public class OffsetSyncProbe {
    public static void main(String[] args) throws Exception {
        Map<String, String> config = new HashMap<>();
        config.put("name", "probe");
        config.put("connector.class", "org.apache.kafka.connect.mirror.MirrorCheckpointConnector");
        config.put("offset-syncs.topic.location", args[0]);
        config.put("source.cluster.alias", args[1]);
        config.put("source.cluster.bootstrap.servers", args[2]);
        config.put("target.cluster.alias", args[3]);
        config.put("target.cluster.bootstrap.servers", args[4]);
        // It is for MirrorMaker 2 alone; its tests may make one.
        Constructor<OffsetSyncStore> made = OffsetSyncStore.class.getDeclaredConstructor(MirrorCheckpointConfig.class);
        made.setAccessible(true);
        StringJoiner found = new StringJoiner(",", "[", "]");
        try (OffsetSyncStore store = made.newInstance(new MirrorCheckpointConfig(config))) {
            store.start(false);  // as one that has its checkpoints; without them it keeps the newest sync alone
            TopicPartition place = new TopicPartition(args[5], Integer.parseInt(args[6]));
            for (int i = 7; i < args.length; i++) {
                found.add(Long.toString(store.translateDownstream("g", place, Long.parseLong(args[i])).orElse(-2)));
            }
        }
        System.out.println(found);
    }
}
