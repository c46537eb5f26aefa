# Databricks notebook source
# MAGIC %md
# MAGIC # 3. Where is this offset on the other side?
# MAGIC
# MAGIC The map between source and target offsets is total and exact. A *position* is what Kafka
# MAGIC commits: the next offset that a consumer reads. Any position translates, in both directions,
# MAGIC at any depth of history.
# MAGIC
# MAGIC | widget | means |
# MAGIC |---|---|
# MAGIC | `flow`, `topic` | empty: the first flow, and its topic with the most records |
# MAGIC | `partition`, `offset` | the source position; `offset` empty is one in the middle of each partition |
# MAGIC | `key` | a key, to find where its newest records are on both sides; with `partition` that is quicker |
# MAGIC | `at` | a time such as `2026-11-21 23:00:00`, to find where both sides stood; empty is not asked |

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

from mirrorlake.notebook import open_notebook, translation

nb = open_notebook(globals(), flow="", topic="", partition="", offset="", key="", at="")

# COMMAND ----------

# MAGIC %md
# MAGIC ## What is mapped
# MAGIC
# MAGIC One row per partition. The target's range may be longer than the source's (transactions
# MAGIC leave markers behind), or shorter (a compacted source has gaps): that is why adding a
# MAGIC constant to an offset is wrong, and why there is a map.

# COMMAND ----------

nb.display(translation.mapped(nb))

# COMMAND ----------

# MAGIC %md
# MAGIC ## The records of a key
# MAGIC
# MAGIC Its twenty newest records in the stage, the newest first; no payload is shown. What follows
# MAGIC translates their offsets. Those of a topic that was deleted and made again since are left
# MAGIC out: their offsets are other records now.

# COMMAND ----------

nb.display(
    translation.of_key(nb) if nb.widget("key") else "the widget key is empty: no key was asked for"
)

# COMMAND ----------

# MAGIC %md
# MAGIC ## From the source to the target
# MAGIC
# MAGIC `exact` false: the position is ahead of what is replicated, and the answer is the highest
# MAGIC safe one; reading from there skips nothing. Or the source has another log than the one that
# MAGIC was mirrored. `back` is the same position, translated back; it
# MAGIC differs from `position` only inside a gap, where it is the next record.

# COMMAND ----------

asked = translation.asked_for(nb)
nb.display(translation.there_and_back(nb, asked))

# COMMAND ----------

# MAGIC %md
# MAGIC ## From the target to the source
# MAGIC
# MAGIC The same positions, asked from the other end: what a failback needs.

# COMMAND ----------

nb.display(translation.back_and_there(nb, asked))

# COMMAND ----------

# MAGIC %md
# MAGIC ## The map, drawn
# MAGIC
# MAGIC The newest ranges of one partition. A straight line: nothing between the records. A step up:
# MAGIC something else was written at the target, or a transaction ended. A gap to the right:
# MAGIC offsets that have no record at the source.

# COMMAND ----------

nb.display(translation.map_chart(nb, int(nb.number("partition", 0))))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Where both sides stood at a time
# MAGIC
# MAGIC For a consumer that has to go back: the first source offset at or behind `at`, and the same
# MAGIC place on the target. Reads the timestamps in the stage.

# COMMAND ----------

if nb.widget("at"):
    nb.display(translation.at_time(nb, nb.widget("at")))
else:
    nb.display("the widget at is empty: no time was asked for")

# COMMAND ----------

# MAGIC %md
# MAGIC ## Next
# MAGIC
# MAGIC In a shell: `mirrorlake translate --flow 'east->west' --topic orders --partition 0 --offset
# MAGIC 42`. In SQL: the view `offset_translation`. To move whole consumer groups:
# MAGIC `04_failover_drill`.
