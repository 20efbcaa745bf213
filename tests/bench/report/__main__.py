"""Makes RESULTS.md, the plots and what the README quotes of the rounds that the driver wrote."""

import argparse
from pathlib import Path

import micro
import plots
import readme
import tables
from data import Results, merged, written
from words import KINDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", type=Path, help="the driver's rounds, JSON, a workload on each line")
    parser.add_argument("--versions", type=Path, required=True, help="a name and its version on each line")
    parser.add_argument("--into", type=Path, required=True, help="where RESULTS.md, results.json and plots/ go")
    parser.add_argument("--criterion", type=Path, help="where criterion left its figures")
    parser.add_argument("--readme", type=Path, help="the document that quotes")
    parser.add_argument("--note", default="", help="what a reader must know of this run")
    options = parser.parse_args()
    versions = options.versions.read_text().splitlines()
    kept = options.into / "results.json"
    found = micro.read(options.criterion) if options.criterion else {}
    raw = merged(options.rounds, kept, versions, found)
    raw["note"] = options.note
    order = list(KINDS)
    raw["tables"].sort(key=lambda table: (order.index(table["workload"]), table["modern"]))
    results = Results(raw)
    kept.write_text(written(raw))
    (options.into / "RESULTS.md").write_text(tables.document(results))
    (options.into / "plots").mkdir(exist_ok=True)
    for name, drawing in plots.drawn(results):
        (options.into / "plots" / f"{name}.svg").write_text(drawing)
    if options.readme:
        readme.replace(options.readme, results)
    print(f"wrote {options.into / 'RESULTS.md'}")


if __name__ == "__main__":
    main()
