"""Runs the project's own checks on the tree. With `--self-test` shows that each can fail."""

import sys
import unittest
from pathlib import Path

import dependencies
import hygiene
import layering
import links
import metadata
import names
import purity
import sentences
import size
import vocabulary
from tree import Check, load

CHECKS: dict[str, Check] = {
    "dependencies": dependencies.check,
    "layering": layering.check,
    "purity": purity.check,
    "vocabulary": vocabulary.check,
    "size": size.check,
    "hygiene": hygiene.check,
    "links": links.check,
    "names": names.check,
    "sentences": sentences.check,
    "metadata": metadata.check,
}


def main() -> int:
    """Exit status 0 when nothing is found."""
    if "--self-test" in sys.argv[1:]:
        suite = unittest.defaultTestLoader.loadTestsFromName("selftest")
        return 0 if unittest.TextTestRunner().run(suite).wasSuccessful() else 1
    tree = load(Path(__file__).resolve().parents[2])
    total = 0
    for name, check in CHECKS.items():
        findings = sorted(set(check(tree)), key=lambda finding: (finding.path, finding.line))
        total += len(findings)
        print(f"{name:<14}{'ok' if not findings else f'{len(findings)} found'}")
        for finding in findings:
            print(f"  {finding}")
    print(f"{size.figures(tree)}\n{names.figures(tree)}\n{sentences.figures(tree)}")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
