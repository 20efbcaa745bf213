"""The bill of materials: what the compiled packages consist of, in CycloneDX."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from project import NAME, ROOT, Target, run, version

COMPILED = ("mcp-resources-cli", "mcp-resources-python", "mcp-resources-node")


def write(target: Target, out: Path) -> Path:
    """Every crate that is linked into the command or a binding, with its licence and the sum of its archive."""
    metadata = json.loads(
        run(
            "cargo metadata",
            *("cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={target.triple}"),
        )
    )
    sums = _sums()
    packages = {package["id"]: package for package in metadata["packages"]}
    linked = _linked(metadata, packages)
    components = {key: _component(packages[key], sums) for key in sorted(linked)}
    bom = Bom(components=components.values())
    bom.metadata.component = Component(name=NAME, version=version(), type=ComponentType.APPLICATION, bom_ref=NAME)
    bom.register_dependency(
        bom.metadata.component, [components[key] for key in linked if packages[key]["name"] in COMPILED]
    )
    for node in metadata["resolve"]["nodes"]:
        if node["id"] in linked:
            needs = [components[need["pkg"]] for need in node["deps"] if need["pkg"] in components and _is_linked(need)]
            bom.register_dependency(components[node["id"]], needs)
    path = out / f"{NAME}-{version()}-{target.triple}.cdx.json"
    path.write_text(JsonV1Dot6(bom).output_as_string(indent=1) + "\n", "utf-8")
    return path


def _is_linked(dependency: dict[str, Any]) -> bool:
    return any(kind["kind"] is None for kind in dependency["dep_kinds"])


def _linked(metadata: dict[str, Any], packages: dict[str, Any]) -> set[str]:
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    found: set[str] = set()
    waiting = [key for key, package in packages.items() if package["name"] in COMPILED]
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            waiting += [need["pkg"] for need in nodes[key]["deps"] if _is_linked(need)]
    return found


def _component(package: dict[str, Any], sums: dict[tuple[str, str], str]) -> Component:
    name, number = package["name"], package["version"]
    licence = package["license"]
    found = sums.get((name, number))
    return Component(
        name=name,
        version=number,
        type=ComponentType.LIBRARY,
        # A version may be in it twice, from two sources; none is.
        bom_ref=f"pkg:cargo/{name}@{quote(number)}",
        purl=PackageURL("cargo", name=name, version=number),
        licenses=[_licence(licence)] if licence else [],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=found)] if found else [],
    )


def _licence(text: str) -> LicenseExpression | DisjunctiveLicense:
    # Some packages still write the slash of old versions of cargo.
    return LicenseExpression(text.replace("/", " OR ") if " " not in text and "/" in text else text)


def _sums() -> dict[tuple[str, str], str]:
    import tomllib

    lock = tomllib.loads((ROOT / "Cargo.lock").read_text("utf-8"))
    return {
        (package["name"], package["version"]): package["checksum"]
        for package in lock["package"]
        if "checksum" in package
    }
