# Databricks notebook source
# MAGIC %md
# MAGIC # 7. Why was this record late?
# MAGIC
# MAGIC One record's life: written, landed, acknowledged by the target, read; how long each part
# MAGIC took, and what held it up. It reads the lake only, and shows no payload.
# MAGIC
# MAGIC | widget | means |
# MAGIC |---|---|
# MAGIC | `flow`, `topic` | empty: the first flow, and its topic with the most records |
# MAGIC | `partition`, `offset` | of the record; `offset` empty is the newest one that was brought to the target |
# MAGIC | `side` | `source`, or `target` where topic, partition and offset are those of the target |
# MAGIC | `key`, `since` | instead: the newest record with this key (text, or bytes as `0x…`), written since |

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

from mirrorlake.notebook import open_notebook, tracing

nb = open_notebook(
    globals(), flow="", topic="", partition="0", offset="", side="source", key="", since=""
)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The story
# MAGIC
# MAGIC The first line says where the record is, and, where an operator has to act, what to type.

# COMMAND ----------

found = tracing.trace(nb)
nb.display(tracing.story(found))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Stage by stage
# MAGIC
# MAGIC `after_ms` is since the stage before; of `read`, since it was written (groups at the source)
# MAGIC or acknowledged (groups at the target). Times are in UTC. A negative one: the producer's
# MAGIC clock is ahead of ours.

# COMMAND ----------

nb.display(tracing.stages(found))

# COMMAND ----------

# MAGIC %md
# MAGIC ## What held it up
# MAGIC
# MAGIC Pauses of the flow, incidents and edits while it was on its way, and what waited in front of
# MAGIC it. No row: nothing that the lake knows of; then compare it with its neighbours.

# COMMAND ----------

nb.display(tracing.held_up(found))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Its neighbours
# MAGIC
# MAGIC How late the 500 offsets before and behind it were. A step: its batch. A slope that falls: a
# MAGIC backlog being worked off. One point alone: its timestamp was old when it was sent.

# COMMAND ----------

nb.display(tracing.neighbours(nb, found))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Next
# MAGIC
# MAGIC In a shell: `mirrorlake trace --flow 'east->west' --topic orders --partition 0 --offset 42`.
# MAGIC The minute as a whole: `02_investigate_latency`, with the same widgets.
