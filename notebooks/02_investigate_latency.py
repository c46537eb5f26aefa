# Databricks notebook source
# MAGIC %md
# MAGIC # 2. From a latency spike to the records
# MAGIC
# MAGIC You saw p99 jump, or have a record that was late. This page goes from the spike to its
# MAGIC minute, to the partition, to the batch, and to the records that waited, and says in which
# MAGIC half of the way they did. It reads the lake only, and shows no payload.
# MAGIC
# MAGIC | widget | means |
# MAGIC |---|---|
# MAGIC | `flow`, `topic` | as in notebook 1; `topic` empty is all topics |
# MAGIC | `partition`, `offset` | begin at the batch that brought this record of `topic` to the target |
# MAGIC | `minute` | begin at this minute, such as `2026-11-21 23:47`, and with `partition` at that partition |
# MAGIC | `since`, `until` | without these: the worst minute in this time; empty is the hour up to the newest batch |
# MAGIC
# MAGIC One record's whole life is in notebook 7.

# COMMAND ----------

# MAGIC %md
# MAGIC ## Installing
# MAGIC
# MAGIC On Databricks: the wheel that the bundle deployed together with this page. In a Git folder
# MAGIC there is none; skip the next two cells there, on compute that has mirrorlake.

# COMMAND ----------

# MAGIC %pip install --quiet -r requirements.txt

# COMMAND ----------

# MAGIC %restart_python

# COMMAND ----------

import os
import sys

sys.path.append(os.path.abspath("../src"))  # where mirrorlake is installed, that one is used

from mirrorlake.notebook import latency, open_notebook

nb = open_notebook(
    globals(), flow="", topic="", partition="", offset="", minute="", since="", until=""
)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The minutes
# MAGIC
# MAGIC Replication latency is from a record's timestamp to the commit of its transaction at the
# MAGIC target. Percentiles of a minute are the highest of its batches. p50 and p99 that rise
# MAGIC together: everything was late (a stop, a slow target). p99 alone: some partition, or one
# MAGIC large batch.

# COMMAND ----------

nb.display(latency.over_time(nb))

# COMMAND ----------

# MAGIC %md
# MAGIC ## The minute, partition by partition
# MAGIC
# MAGIC "until landed" is how long records took to the stage, "until on the target" the whole way.
# MAGIC Where the two bars are nearly alike, the time went before the stage.

# COMMAND ----------

spike = latency.find_spike(nb)
nb.display(str(spike))
nb.display(latency.partition_bars(nb, spike.minute), latency.partitions(nb, spike.minute))

# COMMAND ----------

# MAGIC %md
# MAGIC ## The batches of that partition
# MAGIC
# MAGIC Percentiles of single batches are exact. One batch with many records behind a pause is a
# MAGIC backlog being worked off; many late batches in a row are a flow that is too slow.

# COMMAND ----------

nb.display(latency.batches(nb, spike))

# COMMAND ----------

# MAGIC %md
# MAGIC ## The records that waited longest
# MAGIC
# MAGIC `written_at` is the record's own timestamp, as its producer set it; `landing_ms` is until
# MAGIC the stage, `producing_ms` from there until the batch was booked. A `written_at` far before
# MAGIC its neighbours' was old when it was sent. Negative: the producer's clock is ahead of ours.

# COMMAND ----------

nb.display(latency.records(nb, spike))

# COMMAND ----------

# MAGIC %md
# MAGIC ## What it means

# COMMAND ----------

nb.display(latency.verdict(nb, spike))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Next
# MAGIC
# MAGIC - it waited in the stage: the target was slow, or away; `mirrorlake status` says what is open
# MAGIC - it waited at the source: `06_capacity`, whether the cluster is large enough
# MAGIC - one record of the batch, from written to read: `07_trace`, with its partition and offset
