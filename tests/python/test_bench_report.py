"""The benchmark's report says what the rounds say."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _table(figures: Mapping[str, Sequence[float]]) -> str:
    rows = [{"server": name, "rounds": [{"cpu_us": value} for value in rounds]} for name, rounds in figures.items()]
    rows.append({"server": "rmcp", "rounds": [], "missing": "is not here"})
    return json.dumps({"workload": "W2", "modern": False, "time": 0, "machine": "a machine", "rows": rows}) + "\n"


def _report(folder: Path, table: str) -> str:
    (folder / "rounds").write_text(table)
    (folder / "versions").write_text("ours 1\n")
    command = [sys.executable, "tests/bench/report", folder / "rounds", "--versions", folder / "versions"]
    subprocess.run([*command, "--into", folder], cwd=ROOT, check=True, capture_output=True)
    return (folder / "RESULTS.md").read_text()


def _goal(folder: Path, start: str) -> int:
    """The goal in the line that starts so, whatever it is today."""
    found = re.search(re.escape(start) + r" \| ≥ (\d+) × \| not measured", _report(folder, _table({})))
    assert found
    return int(found[1])


def test_ratios_are_taken_round_by_round(tmp_path: Path) -> None:
    start = "| W2 | CPU, python-sdk, async over ours-python, async"
    goal = _goal(tmp_path, start)
    peer = [goal, goal * 3, goal * 3]
    text = _report(tmp_path, _table({"ours-python, async": [1.0, 2.0, 4.0], "python-sdk, async": peer}))
    assert f"{start} | ≥ {goal} × | {goal} ({goal * 0.75:.0f}–{goal * 1.5:.0f}) | met |" in text
    assert "| ours-python, async | 2.00 (1.00–4.00) |" in text


def test_a_missed_goal_says_by_how_much(tmp_path: Path) -> None:
    start = "| W2 | CPU, python-sdk over ours-python"
    goal = _goal(tmp_path, start)
    for share, by in ((0.995, "less than 1 %"), (0.8, "20 %")):
        peer = goal * share
        text = _report(tmp_path, _table({"ours-python": [1.0], "python-sdk": [peer]}))
        assert f"{start} | ≥ {goal} × | {peer:.0f} ({peer:.0f}–{peer:.0f}) | missed: {by} below" in text
        assert "- W2 (CPU, python-sdk over ours-python) [2026-11-22]: " in text  # a reason has the day of its writing


def test_who_cannot_and_who_is_better_is_said(tmp_path: Path) -> None:
    text = _report(tmp_path, _table({"ours-node": [4.0, 6.0], "ts-sdk": [2.0, 2.0]}))
    assert "| rmcp | is not here |" in text
    assert "- W2: CPU µs/request, ts-sdk 0.42 (0.33–0.50) × ours-node" in text


def test_a_peer_without_an_official_sdk_beside_it_has_its_ratio(tmp_path: Path) -> None:
    start = "| W10 | CPU of a read of 4 KiB, fastmcp over ours"
    goal = _goal(tmp_path, start)
    table = (
        _table({"ours-command": [2.0, 4.0], "fastmcp": [goal * 4] * 2})
        .replace("W2", "W10-read")
        .replace("false", "true")
    )
    text = _report(tmp_path, table)
    spread = f"{goal * 1.5:.0f} ({goal}–{goal * 2})"
    assert f"{start} | ≥ {goal} × | {spread} | met; cannot pass " in text
    assert f"| ours-command | 3.00 (2.00–4.00) | {spread} |" in text


def test_what_was_not_measured_again_stays(tmp_path: Path) -> None:
    _report(tmp_path, _table({"ours-node": [4.0]}).replace("W2", "W1"))
    _report(tmp_path, _table({"ours-node": [8.0]}))
    found = {
        table["workload"]: table["rows"][0]["rounds"]
        for table in json.loads((tmp_path / "results.json").read_text())["tables"]
    }
    assert found == {"W1": [{"cpu_us": 4.0}], "W2": [{"cpu_us": 8.0}]}


def test_a_goal_of_nothing_is_met_or_missed(tmp_path: Path) -> None:
    """No wake-ups at rest: there is no share of nothing by which a goal is missed."""
    rows = [
        {"server": f"{kind}, stdio", "rounds": [{"alone_wakes": wakes, "alone_cpu_ms": 0.0}]}
        for kind, wakes in (("files", 0.0), ("git", 3.0))
    ]
    table = {"workload": "W28", "modern": True, "time": 0, "machine": "a machine", "rows": rows}
    text = _report(tmp_path, json.dumps(table) + "\n")
    assert "| W28 | wake-ups in a minute without a subscription, files, stdio | ≤ 0 | 0.0 (0.0–0.0) | met |" in text
    assert "| W28 | wake-ups in a minute without a subscription, git, stdio | ≤ 0 | 3.0 (3.0–3.0) | missed |" in text
