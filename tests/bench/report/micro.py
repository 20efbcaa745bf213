"""What criterion measured, from the files that it leaves."""

import json
from pathlib import Path


def read(folder: Path) -> dict[str, dict[str, float]]:
    """By name: the nanoseconds of one run, their bounds, and the bytes or elements of it."""
    found: dict[str, dict[str, float]] = {}
    for path in sorted(folder.glob("**/new/benchmark.json")):
        about = json.loads(path.read_text())
        estimate = json.loads((path.parent / "estimates.json").read_text())["median"]
        bounds = estimate["confidence_interval"]
        entry = {
            "ns": round(estimate["point_estimate"], 2),
            "least": round(bounds["lower_bound"], 2),
            "most": round(bounds["upper_bound"], 2),
        }
        for kind, amount in (about.get("throughput") or {}).items():
            entry[kind.lower()] = amount
        found[about["full_id"]] = entry
    return found


def table(micro: dict[str, dict[str, float]]) -> str:
    """A line for each."""
    if not micro:
        return ""
    lines = [
        "## M1: the engine by itself",
        "",
        "Written by criterion: the median, and the bounds that it lies in with 95 %.",
        "",
        "| what | ns | throughput |",
        "| --- | --- | --- |",
    ]
    for name, entry in micro.items():
        digits = 1 if entry["ns"] < 1_000 else 0
        low, high = (f"{entry[bound]:,.{digits}f}" for bound in ("least", "most"))
        lines.append(f"| {name} | {entry['ns']:,.{digits}f} ({low}–{high}) | {_throughput(entry)} |")
    return "\n".join([*lines, ""])


def _throughput(entry: dict[str, float]) -> str:
    if "bytes" in entry:
        return f"{entry['bytes'] / entry['ns']:.2f} GB/s"
    if "elements" in entry:
        return f"{entry['elements'] / entry['ns'] * 1_000:.2f} M/s"
    return ""
