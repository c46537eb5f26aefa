from tests.support.kafka import *
from tests.support.replication import *
def test_anchor(spark, clusters, topic_name, tmp_path):
    t=topic_name[:20]+topic_name[-6:]
    for x in (t, "my."+t): create_topic(clusters.east,x,1); write(clusters.east,x,numbered(10))
    top=write_topology(tmp_path, clusters.east, clusters.west, {"topics":[t]})
    import mirrorlake.engine.landing as L
    if os.environ.get("BREAK"):
        o=L.LandingPlan
        L.LandingPlan=lambda a,p,*r: o(a,p[1:-1],*r)
    run=replicate_once(spark,top)
    assert {r[0] for r in run.lake.sql("SELECT DISTINCT topic FROM records").collect()}=={t}
