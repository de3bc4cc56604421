#!/usr/bin/env python3
"""What the released programs are made of: a bill of materials, and the licences of others' code in it.

usage: bill.py sbom                   CycloneDX 1.5 as JSON on stdout; SOURCE_DATE_EPOCH gives its time
       bill.py notices                the licence texts of every crate in the programs, each text once
       bill.py check SBOM MESSAGES    whether the bill names exactly the crates of a build, from cargo's --message-format=json

Crates and their licences are taken from Cargo.lock and the manifests, for the programs as `cargo build` makes them on Linux.
Nothing in the output depends on the machine but the versions of the tools, which the bill names.
"""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import tomllib
import uuid

# The first is the component that the bill is of.
PROGRAMS = ["warpsmith-cli", "warpsmith-pir"]
PLATFORM = "x86_64-unknown-linux-gnu"
ROOT = pathlib.Path(__file__).resolve().parent.parent

LICENCE_FILE = re.compile(r"(LICEN[CS]E|COPYING|NOTICE|COPYRIGHT|UNLICENSE)([-._].*)?$", re.IGNORECASE)
# Sources that happen to be named like licences.
NOT_A_TEXT = {".rs", ".py", ".toml", ".json", ".c", ".h", ".html"}
# Alternatives that are not taken, where a package offers its code under several licences in files of their own.
NOT_TAKEN = {("zstd-sys", "zstd/COPYING"): "GPL-2.0; zstd/LICENSE is taken"}

# Licences whose texts we carry anyway.
OWN_TEXTS = {"Apache-2.0": "LICENSE-APACHE", "MIT": "LICENSE-MIT"}


def cargo(*args):
    return subprocess.run(["cargo", *args], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def tree(edges):
    """Name and version of every crate on these edges from the programs."""
    packages = [word for program in PROGRAMS for word in ("-p", program)]
    lines = cargo("tree", "--locked", *packages, "--target", PLATFORM, "-e", edges, "--prefix", "none", "--format", "{p}")
    return {tuple(line.split()[:2]) for line in lines.splitlines() if line}


def is_for_tests(dependency):
    return all(kind["kind"] == "dev" for kind in dependency["dep_kinds"])


class Crates:
    """The crates of the programs, and of their build."""

    def __init__(self):
        metadata = json.loads(cargo("metadata", "--format-version", "1", "--locked", "--filter-platform", PLATFORM))
        packages = {(p["name"], "v" + p["version"]): p for p in metadata["packages"]}
        inside = tree("normal,no-proc-macro")
        self.all = {packages[key]["id"]: packages[key] for key in tree("normal,build")}
        self.inside = {packages[key]["id"] for key in inside}
        self.edges = {
            node["id"]: sorted({dep["pkg"] for dep in node["deps"] if dep["pkg"] in self.all and not is_for_tests(dep)})
            for node in metadata["resolve"]["nodes"]
            if node["id"] in self.all
        }
        lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
        self.checksums = {(p["name"], p["version"]): p.get("checksum") for p in lock["package"]}
        self.program = next(p for p in self.all.values() if p["name"] == PROGRAMS[0])

    def of_others(self):
        """Those in the programs that are not ours, by name and version."""
        chosen = [self.all[key] for key in self.inside if self.all[key]["source"]]
        return sorted(chosen, key=lambda p: (p["name"], p["version"]))


def licence(package):
    """As SPDX writes it: the slash of older manifests meant "or"."""
    return re.sub(r"\s*/\s*", " OR ", package["license"] or "") or None


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}".replace("+", "%2B")


def component(crates, package):
    entry = {
        "type": "application" if package["name"] in PROGRAMS else "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        # Compiled into a program, or run to build it.
        "scope": "required" if package["id"] in crates.inside else "excluded",
        "purl": reference(package),
    }
    if package["description"]:
        entry["description"] = " ".join(package["description"].split())
    checksum = crates.checksums[package["name"], package["version"]]
    if checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if licence(package):
        entry["licenses"] = [{"expression": licence(package)}]
    if package["repository"]:
        entry["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return entry


def version(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0]


def sbom():
    crates = Crates()
    components = [component(crates, package) for package in crates.all.values() if package is not crates.program]
    components.sort(key=lambda entry: entry["bom-ref"])
    program = component(crates, crates.program) | {"type": "application", "name": "warpsmith"}
    del program["scope"]
    tools = [("rustc", version("rustc", "--version")), ("cargo", version("cargo", "--version")), ("cc", version("cc", "--version"))]
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "0")))),
            "tools": {"components": [{"type": "application", "name": name, "version": text} for name, text in tools]},
            "component": program,
        },
        "components": components,
        "dependencies": [
            {"ref": reference(crates.all[key]), "dependsOn": sorted(reference(crates.all[to]) for to in edges)}
            for key, edges in sorted(crates.edges.items(), key=lambda edge: reference(crates.all[edge[0]]))
        ],
    }
    # A name that follows from the content, so that the same build has the same one.
    content = hashlib.sha256(json.dumps(bill, sort_keys=True).encode()).hexdigest()
    bill["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, 'warpsmith:' + content)}"
    print(json.dumps(bill, indent=1, sort_keys=True, ensure_ascii=False))


def texts(package):
    """The licence files of a package, by their path in it; those of code that it carries lie deeper."""
    folder = pathlib.Path(package["manifest_path"]).parent
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and LICENCE_FILE.match(path.name) and path.suffix.lower() not in NOT_A_TEXT:
            if (package["name"], name) not in NOT_TAKEN:
                found[name] = path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n").strip()
    return found


def notices():
    crates = Crates()
    users, without = {}, []
    for package in crates.of_others():
        title = f"{package['name']} {package['version']}"
        own = texts(package)
        for name, text in own.items():
            users.setdefault(text, []).append(f"{title} ({name})")
        if not own:
            # Its terms are known by name alone: the text is at hand if it is one of our own two.
            words = (licence(package) or "").split()
            where = next((file for name, file in OWN_TEXTS.items() if name in words), None)
            if not where:
                sys.exit(f"{title} has the licence {licence(package)} and carries no text of it: find it and say here where it is")
            authors = f", of {', '.join(package['authors'])}" if package["authors"] else ""
            without.append(f"{title}: {licence(package)}{authors}; {where} has the text; {package['repository']}")
    print("Code of others in warpsmith, and its licences.\n")
    for package in crates.of_others():
        print(f"  {package['name']} {package['version']}: {licence(package)}")
    print("\nRust's standard library: see rust-standard-library.html beside this file.")
    print("\nThese packages name a licence and carry no text of it:\n")
    print("\n".join(f"  {line}" for line in without))
    for text, owners in sorted(users.items(), key=lambda item: item[1]):
        print("\n" + "=" * 100 + "\n" + "\n".join(owners) + "\n" + "-" * 100 + "\n\n" + text)


def check(bill, messages):
    named = {entry["purl"]: entry["scope"] for entry in json.loads(pathlib.Path(bill).read_text())["components"]}
    built = set()
    for line in pathlib.Path(messages).read_text().splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact":
            # Ends with #name@version, or #version where the folder has the crate's name.
            source, _, tail = message["package_id"].rpartition("#")
            name = tail if "@" in tail else f"{source.rpartition('/')[2]}@{tail}"
            built.add(f"pkg:cargo/{name}".replace("+", "%2B"))
    built = {purl for purl in built if not purl.startswith(f"pkg:cargo/{PROGRAMS[0]}@")}
    missing, idle = sorted(built - set(named)), sorted(set(named) - built)
    if missing or idle or not built:
        sys.exit(f"the bill of materials and the build differ: built and not named {missing}, named and not built {idle}")
    inside = sum(scope == "required" for scope in named.values())
    print(f"the bill names all {len(built)} crates of the build, {inside} of them in the programs")


def main():
    match sys.argv[1:]:
        case ["sbom"]:
            sbom()
        case ["notices"]:
            notices()
        case ["check", bill, messages]:
            check(bill, messages)
        case _:
            sys.exit(__doc__)


main()
