# Databricks notebook source
# MAGIC %md
# MAGIC # 1. Where do the flows stand?
# MAGIC
# MAGIC The first page to open. It reads the tables that mirrorlake keeps in its lake, and changes
# MAGIC nothing.
# MAGIC
# MAGIC | widget | means |
# MAGIC |---|---|
# MAGIC | `lake` | `catalog.schema`, or the folder of a lake |
# MAGIC | `flow` | such as `east->west`; empty is the first one |
# MAGIC | `since`, `until` | times such as `2026-11-21 23:00:00`; empty is the hour up to the newest batch |
# MAGIC
# MAGIC On a laptop: `mirrorlake demo`, then `python notebooks/01_quickstart.py` (widgets are
# MAGIC arguments: `flow='east->west'`).

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

from mirrorlake.notebook import open_notebook, overview

nb = open_notebook(globals(), flow="", since="", until="")

# COMMAND ----------

# MAGIC %md
# MAGIC ## The flows
# MAGIC
# MAGIC One row per flow. Read `state` first:
# MAGIC
# MAGIC - **replicating**: records are on their way; `lag_seconds` says how late the latest
# MAGIC   partition is.
# MAGIC - **idle**: everything is on the target, and nothing but heartbeats has come for a minute.
# MAGIC - **not running**: no sample was taken for a minute. On a schedule (`run --once`) that is
# MAGIC   normal between two runs. Lag that was there goes on growing here, as it really does.
# MAGIC - **incident**: something waits for a decision; it is listed below.
# MAGIC
# MAGIC `replication_p99_ms` is of the ten minutes that ended with the newest batch: right after a
# MAGIC start it is the backlog.

# COMMAND ----------

nb.display(nb.query("flow_overview"))

# COMMAND ----------

# MAGIC %md
# MAGIC ## What waits for you
# MAGIC
# MAGIC Each row stops one topic or partition until an operator decides; all others go on.
# MAGIC `docs/incidents.md` says what each kind means, and `mirrorlake resolve` offers the choices.
# MAGIC No rows: nothing waits.

# COMMAND ----------

nb.display(nb.query("incidents_of", flow=nb.flow))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Which partitions are behind
# MAGIC
# MAGIC The latest first. One partition that is behind while its neighbours are not: a refused
# MAGIC record (`state` is `stopped`), or a key that gets most of the records. All of a topic: look
# MAGIC at the target (notebook 2). All of a flow: it is too slow for the load (notebook 6), or it
# MAGIC does not run.

# COMMAND ----------

nb.display(nb.query("laggards", flow=nb.flow))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Throughput and lag over time
# MAGIC
# MAGIC Throughput is what reached the target. Lag that rises while throughput does not: a ceiling
# MAGIC was met. Lag that rises while throughput is 0: the flow stood still.

# COMMAND ----------

nb.display(overview.throughput(nb), overview.lag(nb))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Next
# MAGIC
# MAGIC - late, or a spike: `02_investigate_latency`
# MAGIC - where is this offset on the other side: `03_translate_offsets`
# MAGIC - could we fail over now: `04_failover_drill`
# MAGIC - is everything there: `05_audit`
# MAGIC - is the cluster large enough: `06_capacity`
