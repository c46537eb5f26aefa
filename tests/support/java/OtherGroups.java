import java.io.DataInputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatRequest;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Makes groups that are no consumer groups: `bootstrap topic share-group streams-group`. */
public class OtherGroups {
    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], topic = args[1], share = args[2], streams = args[3];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            for (String feature : List.of("share.version", "streams.version")) {
                FeatureUpdate update = new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE);
                admin.updateFeatures(Map.of(feature, update), new UpdateFeaturesOptions()).all().get();
            }
        }
        makeShareGroup(bootstrap, topic, share);
        makeStreamsGroup(bootstrap, topic, streams);
        System.out.println("made");
    }

    private static void makeShareGroup(String bootstrap, String topic, String group) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings, bytes, bytes)) {
            consumer.subscribe(List.of(topic));
            for (int number = 0; number < 10; number++) {
                consumer.poll(Duration.ofMillis(500));
            }
        }
    }

    /** One heartbeat, as Kafka Streams sends its first one (KIP-1071). */
    private static void makeStreamsGroup(String bootstrap, String topic, String group) throws Exception {
        StreamsGroupHeartbeatRequestData.Subtopology part = new StreamsGroupHeartbeatRequestData.Subtopology()
            .setSubtopologyId("0").setSourceTopics(List.of(topic));
        StreamsGroupHeartbeatRequestData data = new StreamsGroupHeartbeatRequestData()
            .setGroupId(group).setMemberId("one").setMemberEpoch(0).setRebalanceTimeoutMs(5000).setProcessId("one")
            .setActiveTasks(List.of()).setStandbyTasks(List.of()).setWarmupTasks(List.of())
            .setTopology(new StreamsGroupHeartbeatRequestData.Topology().setEpoch(0).setSubtopologies(List.of(part)));
        short version = ApiKeys.STREAMS_GROUP_HEARTBEAT.latestVersion(true);
        RequestHeader header = new RequestHeader(ApiKeys.STREAMS_GROUP_HEARTBEAT, version, "test", 1);
        ByteBuffer request = new StreamsGroupHeartbeatRequest(data, version).serializeWithHeader(header);
        String[] place = bootstrap.split(",")[0].split(":");
        try (Socket socket = new Socket(place[0], Integer.parseInt(place[1]))) {
            socket.getOutputStream().write(ByteBuffer.allocate(4).putInt(request.remaining()).array());
            byte[] body = new byte[request.remaining()];
            request.get(body);
            socket.getOutputStream().write(body);
            DataInputStream answer = new DataInputStream(socket.getInputStream());
            byte[] told = new byte[answer.readInt()];
            answer.readFully(told);
            // Correlation id and tags of the header, then how long we were throttled, then the error.
            short error = ByteBuffer.wrap(told).getShort(4 + 1 + 4);
            if (error != 0) {
                throw new IllegalStateException("the broker refused the group: error " + error);
            }
        }
    }
}
