# Databricks notebook source
# MAGIC %md
# MAGIC # 5. Is everything there?
# MAGIC
# MAGIC Source, stage, map and target of every partition, side by side, by SQL: what is missing,
# MAGIC where, and since when. It reads the coordinates (not the payload) of all staged records of
# MAGIC the flow, so on a large lake give it some minutes and a warehouse of some size. What source
# MAGIC and target hold is known from the newest sample.

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

from mirrorlake.notebook import audit, open_notebook

nb = open_notebook(globals(), flow="")

# COMMAND ----------

# MAGIC %md
# MAGIC ## The answer

# COMMAND ----------

nb.display(audit.verdict(nb))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Partition by partition
# MAGIC
# MAGIC What is not complete comes first. `verdict`:
# MAGIC
# MAGIC - **complete**: what was at the source at the sample is staged, and what is staged is
# MAGIC   mapped. `staged` may be less than `source_end - source_start` (gaps of compaction and
# MAGIC   transaction markers have no record), or more (the source has forgotten records that the
# MAGIC   stage still has).
# MAGIC - **not staged**: the source had more than was landed at the sample, counting what is in or
# MAGIC   behind an open transaction. While the flow runs that is lag; if it does not, it is what a
# MAGIC   lost source would take with it.
# MAGIC - **not on the target**: staged, and not mapped, or not produced at the sample: lag again
# MAGIC   while the flow runs; else see below.
# MAGIC - **staged, but the source is not looked at any more**: no newest sample has the partition,
# MAGIC   since it is gone, or no process has run the flow for a month.
# MAGIC - **the target did not say what it has**: no leader of the partition answered there when it was
# MAGIC   sampled, so nothing is known of what the map says it has.
# MAGIC - **the target has lost records**: the target's end is below what was written to it (deleted
# MAGIC   and made again, perhaps, or an unclean election).
# MAGIC - **staged twice**: must never happen; keep the lake as it is and report it.

# COMMAND ----------

nb.display(nb.query("audit", flow=nb.flow))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Proven by content
# MAGIC
# MAGIC What is above goes by offsets. `mirrorlake verify` reads the records themselves at source,
# MAGIC stage and target, and compares their digests; this is how much of each topic it has proven,
# MAGIC since when, and where it found differences (the table `audits` has a row for each range,
# MAGIC `incidents` what differs).

# COMMAND ----------

nb.display(audit.proof(nb), nb.query("proven", flow=nb.flow))

# COMMAND ----------

# MAGIC %md
# MAGIC What differs, and what was compared last: how many records there were at the source, in the
# MAGIC stage and at the target, and how many were left out of the comparison, by reason
# MAGIC (`docs/trust.md` explains each).

# COMMAND ----------

nb.display(nb.query("proven_differences", flow=nb.flow), nb.query("verified", flow=nb.flow))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Staged, and not on the target
# MAGIC
# MAGIC `missing_since` is when the first of them was landed; `incident` and `decision` are what is
# MAGIC known about that partition: a record that an operator gave up (`skip`) stays listed here,
# MAGIC and rightly so. The stage has the records: they can be read from `records`, and produced by
# MAGIC hand if they are wanted.

# COMMAND ----------

nb.display(nb.query("missing_since", flow=nb.flow))

# COMMAND ----------

# MAGIC %md
# MAGIC ## At the source, and not staged
# MAGIC
# MAGIC Offsets at the newest sample. What came to the source after `sampled_at` cannot be known
# MAGIC here.

# COMMAND ----------

nb.display(nb.packaged("queries", "never_staged", flow=nb.flow))

# COMMAND ----------

# MAGIC %md
# MAGIC ## Next
# MAGIC
# MAGIC - something is missing, and an incident says why: `mirrorlake resolve` lists the choices
# MAGIC - something is missing, and nothing says why: `mirrorlake verify` compares the records themselves
# MAGIC - a range was never compared: `mirrorlake verify` goes on where it ended (`docs/trust.md`)
