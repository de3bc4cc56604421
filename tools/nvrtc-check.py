#!/usr/bin/env python3
"""Compiles the kernels with NVRTC for every architecture we support; needs no GPU.

usage: nvrtc-check.py LIBNVRTC EMIT      EMIT is the example program `emit` of crates/kernel

Fails when a text does not compile, or spills more than stated here. Spills are read from ptxas' own report.
"""
import concurrent.futures
import ctypes
import itertools
import re
import subprocess
import sys

ARCHITECTURES = [75, 80, 86, 89, 90, 120]
# What a search spends, and the most bytes a lane may store to spill slots (2026-11: they lie outside the
# inner loop, but for the few words five blocks leave no registers for).
# The third column is the entry point that is looked at.
SPECS = [
    ("one range", [], "search_walk", 256),
    ("one range, five blocks", ["blocks=5"], "search_walk", 512),
    ("one range, walk only", ["blocks=5", "stage=walk"], "search_walk", 512),
    ("one range, walk and words", ["blocks=5", "stage=words"], "search_walk", 512),
    ("four ranges", ["ranges=4"], "search_walk", 384),
    ("small set", ["filter=near"], "search_walk", 256),
    ("small set, five blocks", ["filter=near", "blocks=5"], "search_walk", 512),
    ("large set", ["filter=far"], "search_walk", 256),
    ("large set, five blocks", ["filter=far", "blocks=5"], "search_walk", 512),
    ("field", ["program=field", "blocks=12"], "field_bench", 0),
    ("moves", ["program=moves"], "moves_place", 0),
    ("walk, x", ["program=walk", "blocks=5", "of=x"], "points_walk", 128),
    ("walk, images", ["program=walk", "blocks=5", "of=hash160"], "points_walk", 128),
    ("walk, images and y", ["program=walk", "blocks=5", "of=account"], "points_walk", 128),
    ("accounts", ["program=account", "blocks=6"], "points_test", 0),
    ("contracts, set", ["program=contract", "blocks=6", "ranges=0", "set=1"], "points_test", 0),
    ("accounts, best score", ["program=account", "blocks=6", "ranges=0", "score=zeros"], "points_test", 0),
    ("x, terms", ["program=x", "blocks=8", "ranges=0", "terms=1"], "points_test", 0),
    ("hash160", ["program=hash160", "blocks=6"], "points_test", 0),
    ("hash160, set", ["program=hash160", "blocks=6", "ranges=0", "set=1"], "points_test", 0),
    ("hash160, terms", ["program=hash160", "blocks=6", "ranges=0", "terms=1"], "points_test", 0),
    ("script hashes", ["program=script", "blocks=6"], "points_test", 0),
    ("uncompressed keys", ["program=uncompressed", "blocks=8"], "points_test", 64),
    ("taproot", ["program=taproot"], "taproot_walk", 256),
    ("taproot, table", ["program=taproot"], "taproot_fill", 0),
    ("taproot, terms", ["program=taproot", "ranges=0", "terms=1", "bits=20"], "taproot_walk", 256),
    ("scan, walk", ["program=scan-walk", "blocks=5"], "scan_walk", 128),
    ("scan, walk with y", ["program=scan-walk", "blocks=5", "y=1"], "scan_walk", 128),
    ("scan, list", ["program=scan-test", "blocks=8", "ranges=0", "set=1"], "scan_test", 0),
    ("scan, fuse16", ["program=scan-test", "blocks=8", "fuse=16"], "scan_test", 0),
    ("scan, script", ["program=scan-test", "blocks=8", "fuse=8", "forms=compressed,script"], "scan_test", 0),
    ("scan, uncompressed", ["program=scan-test", "blocks=8", "y=1", "fuse=16", "forms=uncompressed"], "scan_test", 32),
    ("scan, accounts", ["program=scan-test", "blocks=6", "y=1", "fuse=16", "forms=account"], "scan_test", 64),
    ("scan, taproot", ["program=scan-taproot", "blocks=5", "fuse=16"], "scan_taproot", 256),
    ("create2", ["program=salts"], "salts_walk", 0),
    ("create2, ranges and terms", ["program=salts", "ranges=4", "terms=1"], "salts_walk", 16),
    ("hints: cutoffs", ["pir=cutoffs", "block=512", "blocks=2"], "pir_cutoffs", 0),
    ("hints: cutoffs, wide", ["pir=cutoffs", "block=512", "blocks=2", "w=42826"], "pir_cutoffs", 0),
    ("hints: regular", ["pir=regular"], "pir_parities", 16),
    ("hints: regular, wide", ["pir=regular", "w=42826"], "pir_parities", 16),
    ("hints: regular, large entries", ["pir=regular", "size=4096"], "pir_parities", 16),
    ("hints: pairs", ["pir=pairs"], "pir_parities", 16),
    ("hints: pairs, wide", ["pir=pairs", "w=42826"], "pir_parities", 16),
    ("hints: pairs, small entries", ["pir=pairs", "size=8"], "pir_parities", 0),
    ("hints: rest", ["pir=rest", "block=256"], "pir_ties", 0),
    ("create3, guarded", ["program=salts", "guarded=1", "create=1", "byte=83"], "salts_walk", 0),
]


def compile_text(nvrtc, text, architecture):
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"search.cu", 0, None, None)
    options = [b"--gpu-architecture=sm_%d" % architecture, b"-std=c++14", b"--ptxas-options=-v", b"-w"]
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return status, log.value.decode(errors="replace")


def check(library, text, architecture, entry, allowed):
    """Whether a text compiles and spills no more than allowed; what there is to say; the log if it does not."""
    status, log = compile_text(ctypes.CDLL(library), text, architecture)
    report = re.search(entry + r"' for.*?(\d+) bytes spill stores.*?Used (\d+) registers", log, re.S)
    spilled = int(report.group(1)) if report else None
    ok = status == 0 and spilled is not None and spilled <= allowed
    what = f"{report.group(2)} registers, {spilled} bytes spilled" if report else "no report"
    return ok, what, "" if ok else "\n" + log


def main():
    library, emit = sys.argv[1:]
    jobs = []
    for name, arguments, entry, allowed in SPECS:
        text = subprocess.run([emit, *arguments], check=True, capture_output=True).stdout
        jobs += [(name, text, architecture, entry, allowed) for architecture in ARCHITECTURES]
    names, texts, architectures, entries, bounds = zip(*jobs)
    passed = 0
    # A process for each core: within one, compilations wait for each other.
    with concurrent.futures.ProcessPoolExecutor() as pool:
        results = pool.map(check, itertools.repeat(library), texts, architectures, entries, bounds)
        for name, architecture, (ok, what, log) in zip(names, architectures, results):
            passed += ok
            print(f"{'ok' if ok else 'FAILED'}  sm_{architecture:<4} {name}: {what}{log}", flush=True)
    failed = len(jobs) - passed
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
