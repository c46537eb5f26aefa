-- The newest checkpoint of every group and partition. If it belongs to a past generation of the target topic, it says so: its
-- target position means nothing any more. Nor does one behind records that the target has lost, of a time before an operator
-- decided about these: they come again at other offsets, if at all. other_log says where the source has another log than the
-- one that was mirrored, until an operator lets the flow go on with it: the position leads nowhere in that one.
CREATE OR REPLACE VIEW group_positions AS
WITH ranked AS (
  SELECT *, row_number() OVER (PARTITION BY flow, group_id, topic, partition ORDER BY checkpointed_at DESC) AS newest
  FROM checkpoints
),
lost AS (
  SELECT flow, topic, partition, coalesce(target_generation, 0) AS of_generation,
         collect_list(struct(target_topic, target_offset, resolved_at)) AS losses
  FROM incidents
  WHERE kind = 'target_lost' AND target_offset IS NOT NULL
  GROUP BY flow, topic, partition, coalesce(target_generation, 0)
),
made_again AS (
  SELECT DISTINCT split(flow, '->')[0] AS source_cluster, topic
  FROM incidents
  WHERE kind = 'topic_recreated' AND (resolved_at IS NULL OR resolution = 'stop')
),
begun AS (
  SELECT source_cluster, topic, partition, max(generation) AS generation, max(started_at) AS began
  FROM generations
  WHERE generation > 0
  GROUP BY source_cluster, topic, partition
),
went_back AS (
  SELECT split(flow, '->')[0] AS source_cluster, topic, partition, min(coalesce(first_offset, 0)) AS since
  FROM incidents
  WHERE kind = 'source_rewound' AND (resolved_at IS NULL OR resolution = 'stop') AND NOT EXISTS (
    SELECT 1 FROM begun
    WHERE begun.source_cluster = split(incidents.flow, '->')[0] AND begun.topic = incidents.topic
      AND (begun.partition IS NULL OR begun.partition = incidents.partition)
      AND coalesce(begun.generation > incidents.generation, begun.began > incidents.at))
  GROUP BY split(flow, '->')[0], topic, partition
),
kept AS (
  SELECT ranked.*, target.flow IS NULL
           OR target.lives AND target.target_generation = coalesce(ranked.target_generation, 0) AS is_living,
         coalesce(exists(losses, loss -> coalesce(loss.target_topic, ranked.target_topic) = ranked.target_topic
                                   AND loss.target_offset < ranked.target_position
                                   AND coalesce(loss.resolved_at >= ranked.checkpointed_at, true)), false)
           AND coalesce(ranked.reason <> 'the group has no position there any more', true) AS is_behind_lost,
         CASE WHEN made_again.topic IS NOT NULL
              THEN 'the source topic was made again since it was mirrored, and no position there means what it did'
              WHEN ranked.source_position > went_back.since
              THEN 'the log of the source partition went back since it was mirrored, and is another one at this position'
              END AS other_log
  FROM ranked LEFT JOIN living_targets AS target ON target.flow = ranked.flow AND target.topic = ranked.topic
    AND target.target_topic = ranked.target_topic
  LEFT JOIN lost ON lost.flow = ranked.flow AND lost.topic = ranked.topic AND lost.partition = ranked.partition
    AND lost.of_generation = coalesce(ranked.target_generation, 0)
  LEFT JOIN made_again ON made_again.source_cluster = split(ranked.flow, '->')[0] AND made_again.topic = ranked.topic
  LEFT JOIN went_back ON went_back.source_cluster = split(ranked.flow, '->')[0] AND went_back.topic = ranked.topic
    AND went_back.partition = ranked.partition
  WHERE newest = 1
)
SELECT flow, group_id, topic, partition, source_position, target_topic, target_position, metadata, checkpointed_at,
       synced AND is_living AND NOT is_behind_lost AS synced,
       CASE WHEN NOT is_living THEN 'the target topic is not the one that the position was of'
            WHEN is_behind_lost THEN 'the position is ahead of the mirror: the target has lost records in front of it'
            ELSE reason END AS reason,
       coalesce(target_generation, 0) AS target_generation, coalesce(generation, 0) AS generation,
       other_log
FROM kept
