"""What `make test` leaves to CI (`wide`, tests/support/wide.py) is proven by something that it
has, or says why by nothing."""

import pytest

from tests.support.wide import Module, files, marks, module_of, parsed, runs

#: What `make test` has to show on real brokers and real Delta, or in the simulation, and where.
KEPT = {
    "kill -9": "integration/test_crash.py::test_driver_killed_at_point_after_point",
    "a record of any kind": "integration/test_fidelity.py::test_arrives_as_it_was_sent",
    "groups": (
        "integration/test_groups.py::test_groups_read_after_failover_exactly_what_they_had_not"
    ),
    "translation": "integration/test_translate.py::test_law_over_generated_runs_and_gaps",
    "verify": "integration/test_verify.py::test_each_kind_is_found_and_named",
    "restore": "integration/test_restore.py::test_killed_again_and_again",
    "replay": "integration/test_replay.py::test_the_first_ones_at_a_rate",
    "forget": "integration/test_forget.py::test_what_is_forgotten_stays_so",
    "migrate": "integration/test_migrate.py::test_wherever_a_group_stands_it_reads_on",
    "trace": "integration/test_trace.py::test_lives_of_records",
    "upkeep": "lake/test_upkeep.py::test_tables_stay_small_while_rounds_go_on",
    "a store": "integration/test_lake_in_a_store.py::test_a_lake_in_a_store_is_one_as_any_other",
    "a catalog": "lake/test_catalog_views.py::test_made_once_then_left_alone",
    "the bundle": "bundle/test_bundle.py::test_each_resource_is_one_that_databricks_knows",
    "the wheel": "bundle/test_wheel.py::test_the_wheel_alone_answers_and_names_what_else_there_is",
    "a notebook": "lake/test_library.py::test_notebooks_in_a_kernel_show_all_inline",
    "the simulation": "simulation/test_simulation.py::test_no_schedule_breaks_a_law",
}
#: Files of tests/integration of which every test is slow: what `make test` has instead, or why it
#: has nothing.
SLOW_ALONE = {
    "test_any_broker_away.py": (
        "unit/failover/test_moves_to_silent_leaders.py::test_nothing_is_called_exact_where_the_target_does_not_answer"
    ),
    "test_broker_versions.py": "brokers of each version are fetched and started",
    "test_control_once.py": (
        "integration/test_control_configs.py::test_a_refused_change_is_told_once_and_stops_no_other"
    ),
    "test_demo.py": "integration/test_crash.py::test_driver_killed_at_point_after_point",
    "test_drain_beside_a_run.py": (
        "unit/failover/test_ends_of_a_drain.py::test_a_leader_that_did_not_say_where_its_log_ends"
    ),
    "test_every_size.py": "integration/test_fidelity.py::test_arrives_as_it_was_sent",
    "test_failover_guide.py": (
        "integration/test_groups.py::test_groups_read_after_failover_exactly_what_they_had_not"
    ),
    "test_failover_million.py": (
        "integration/test_groups.py::test_groups_read_after_failover_exactly_what_they_had_not"
    ),
    "test_faults_of_a_store.py": (
        "integration/test_lake_in_a_store.py::test_a_lake_in_a_store_is_one_as_any_other"
    ),
    "test_full_disk.py": "simulation/test_simulation.py::test_no_schedule_breaks_a_law",
    "test_groups_killed.py": (
        "integration/test_groups.py::test_a_failover_that_was_killed_half_way_ends_in_the_same_state"
    ),
    "test_half_alive.py": (
        "unit/control/test_target_generations.py::test_a_topic_of_which_a_leader_is_away_holds_up_no_other"
    ),
    "test_heartbeats.py": (
        "integration/test_other_heartbeats.py::test_an_applications_topic_gets_no_heartbeat"
    ),
    "test_hive_metastore.py": "lake/test_catalog_views.py::test_made_once_then_left_alone",
    "test_host_without_power.py": (
        "lake/test_power_loss.py::test_what_was_committed_is_there_after_a_loss_of_power"
    ),
    "test_image.py": (
        "unit/test_ops_files.py::test_the_image_installs_extras_that_there_are_and_java_for_spark_alone"
    ),
    "test_isolation.py": (
        "integration/test_laws_on_each_way.py::test_what_the_source_lost_stops_its_partition_and_is_told"
    ),
    "test_judged_late.py": "integration/test_plan_of_unseen.py::test_a_flow_that_was_away",
    "test_leader_that_died.py": "a broker of three has to die and the others to notice",
    "test_live_configuration.py": (
        "unit/run/test_edits.py::test_an_invalid_edit_is_an_incident_until_the_next_one"
    ),
    "test_maintain_while_running.py": (
        "lake/test_maintain.py::test_the_command_says_what_it_did_and_a_dry_run_changes_nothing"
    ),
    "test_many_topics.py": (
        "integration/test_control_configs.py::test_a_mirror_is_made_with_its_configs_at_once"
    ),
    "test_migrate_mirror_maker.py": (
        "integration/test_migrate.py::test_wherever_a_group_stands_it_reads_on"
    ),
    "test_mm2_clients.py": (
        "integration/test_syncs_of_offsets.py::test_a_reader_of_offset_syncs_finds_the_pairs_of_the_map"
    ),
    "test_mm2_pipe.py": (
        "integration/test_syncs_of_offsets.py::test_a_reader_of_offset_syncs_finds_the_pairs_of_the_map"
    ),
    "test_notebooks.py": "lake/test_library.py::test_notebooks_in_a_kernel_show_all_inline",
    "test_other_groups.py": (
        "integration/test_groups.py::test_the_broker_lists_groups_of_the_new_protocol"
    ),
    "test_pod.py": "unit/test_ops_files.py::test_kubernetes_takes_the_manifests",
    "test_prometheus.py": (
        "unit/metrics/test_ops_expressions.py::test_each_alert_of_the_view_is_one_of_prometheus"
    ),
    "test_registered.py": "lake/test_registration.py::test_commits_of_others_are_found",
    "test_requests_of_an_idle_flow.py": (
        "unit/test_cost_page.py::test_requests_of_a_store_follow_its_pace"
    ),
    "test_rotated_secret.py": (
        "unit/kafka/test_renewal.py::test_a_rotated_secret_is_seen_at_the_interval"
    ),
    "test_second_signal.py": (
        "integration/test_before_spark.py::test_a_stop_does_not_wait_for_spark"
    ),
    "test_sessions.py": "sessions of other kinds are started: executors, Spark Connect",
    "test_silent_metastore.py": "a metastore that says nothing has to be waited for",
    "test_slow_target.py": "what is held are rates: minutes pass",
    "test_source_changes.py": (
        "integration/test_laws_on_each_way.py::test_what_the_source_lost_stops_its_partition_and_is_told"
    ),
    "test_source_refused.py": (
        "integration/test_security.py::test_a_topic_that_may_be_seen_but_not_read_is_named"
    ),
    "test_source_rewound.py": (
        "unit/landing/test_source_comparison.py::test_a_rewound_partition_waits_alone_and_says_what_is_gone"
    ),
    "test_spark_queries.py": (
        "unit/failover/test_query_checkpoint.py::test_both_directions_and_every_source"
    ),
    "test_target_changes.py": "simulation/test_simulation.py::test_no_schedule_breaks_a_law",
    "test_target_restarts.py": "simulation/test_simulation.py::test_no_schedule_breaks_a_law",
    "test_topologies.py": (
        "integration/test_groups.py::test_failback_reads_at_home_exactly_what_was_not_read_there"
    ),
    "test_tracking.py": "unit/tracking/test_recorder.py::test_a_meter_adds_up_and_begins_anew",
    "test_trimmed_stage.py": (
        "lake/test_maintain.py::test_a_disabled_flow_holds_records_for_the_time_that_the_file_says"
    ),
    "test_two_thousand_partitions.py": (
        "unit/landing/test_source_ends.py::test_what_an_idle_source_is_asked_a_minute_is_bounded"
    ),
    "test_walk_of_a_workspace.py": "bundle/test_bundle.py::test_parameters_are_a_command_of_ours",
    "test_walks.py": "integration/test_init_and_doctor.py::test_plan_works_after_init",
    "test_walks_of_newcomers.py": "integration/test_import.py::test_an_imported_file_passes_plan",
    "test_without_jars.py": (
        "integration/test_before_spark.py::test_a_java_that_is_missing_is_missed_at_the_start"
    ),
}


def test_each_mark_names_a_test_of_make_test_or_says_why_none() -> None:
    wrong = [
        f"{mark.file}:{mark.line}: {name}"
        for mark in marks()
        for name in mark.named or [mark.because]
        if not (runs(name) if mark.named else name)
    ]
    assert wrong == [], "make test does not run these, or the mark says nothing"


def test_each_file_of_integration_has_a_test_in_make_test_or_a_reason() -> None:
    left_out = {file for file in files("integration") if not module_of(file).tests}
    slow = {file.partition("/")[2] for file in left_out if not module_of(file).wide}
    assert slow == SLOW_ALONE.keys()
    wrong = [of for of in SLOW_ALONE.values() if "::" in of and not runs(of)]
    assert wrong == [], "make test does not run these"


@pytest.mark.parametrize("name", KEPT.values(), ids=KEPT.keys())
def test_make_test_shows(name: str) -> None:
    assert runs(name), f"make test does not run {name}"


def test_marks_are_read_from_decorators_names_lists_and_parameters() -> None:
    module = parsed("a/test_a.py", TEXT)
    assert module == Module(
        {
            "test_runs": frozenset(),
            "test_slow": frozenset({"slow"}),
            "test_wide": frozenset({"wide"}),
        },
        module.wide,
    )
    assert [(mark.named, mark.because) for mark in module.wide] == [
        (("a/test_a.py::test_runs",), ""),
        (("b/test_b.py::test_b",), ""),
        ((), "it takes a minute"),
        ((), ""),
    ]
    whole = parsed("a/test_a.py", "pytestmark = [pytest.mark.wide('test_b')]\ndef test_c(): pass")
    assert whole.tests == []


TEXT = """
SLOW = pytest.mark.slow

@pytest.mark.parametrize("one", [1, pytest.param(2, marks=pytest.mark.wide("test_runs"))])
@pytest.mark.parametrize("two", [1, pytest.param(2, marks=SLOW)])
def test_runs(one, two): pass

@SLOW
def test_slow(): pass

@pytest.mark.wide("b/test_b.py::test_b")
def test_wide(): pass

ODD = [
    pytest.mark.wide(because="it takes a minute"),
    pytest.mark.wide,
]
"""
