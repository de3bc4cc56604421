#!/usr/bin/env python3
"""Runs the program for a long time and judges it; see soak.sh, which is how it is started.

Nothing here shares code with the program: points and addresses are computed below, in whole numbers, from BIP 173, 341 and
350 and SEC 2. Secrets of these runs are of no use to anybody; they go to a folder of mode 0700 that is removed at the end.
"""

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

P = 2**256 - 2**32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)
CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
# Memory that is let grow after the warm-up: the larger of a hundredth and this, for the allocator's own book-keeping.
SLACK_KIB = 4096
# A count that comes less often than this is none of an honest run.
LEAST_CHANCE = 1e-9


def add(a, b):
    """Sum of two affine points, none of the cases that a table of multiples cannot meet."""
    if a is None:
        return b
    if a == b:
        slope = 3 * a[0] * a[0] * pow(2 * a[1], -1, P) % P
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, P) % P
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def table():
    """For each byte of a scalar the multiples of G it can stand for."""
    rows, base = [], G
    for _ in range(32):
        row, sum_ = [None], None
        for _ in range(255):
            sum_ = add(sum_, base)
            row.append(sum_)
        rows.append(row)
        base = add(sum_, base)
    return rows


def x_of(key, rows):
    """The x coordinate of key*G, in Jacobian coordinates, so that there is one inversion."""
    point = None
    for row, byte in zip(rows, key.to_bytes(32, "little")):
        if not byte:
            continue
        x2, y2 = row[byte]
        if point is None:
            point = x2, y2, 1
            continue
        x1, y1, z1 = point
        zz = z1 * z1 % P
        h, r = (x2 * zz - x1) % P, (y2 * zz * z1 - y1) % P
        assert h, "the two parts are different multiples of G below its order"
        hh = h * h % P
        v, hhh = x1 * hh % P, h * hh % P
        x3 = (r * r - hhh - 2 * v) % P
        point = x3, (r * (v - x3) - y1 * hhh) % P, z1 * h % P
    return point[0] * pow(point[2], -2, P) % P


def bech32(prefix, words, constant):
    """The text of five-bit words."""
    check = 1
    for word in [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix] + words + [0] * 6:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ word
        for i, g in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            check ^= g if top >> i & 1 else 0
    check ^= constant
    return prefix + "1" + "".join(CHARSET[w] for w in words + [check >> 5 * (5 - i) & 31 for i in range(6)])


def five_bits(number):
    """32 bytes as 52 words; the last is padded with zeros."""
    return [number << 4 >> 5 * (51 - i) & 31 for i in range(52)]


def npub(x):
    return bech32("npub", five_bits(x), 1)


def rawtr(x):
    return bech32("bc", [1] + five_bits(x), 0x2BC830A3)


class Memory:
    """What a process holds, sampled once a second."""

    def __init__(self, pid):
        self.pid, self.resident, self.card = pid, [], []

    def sample(self):
        try:
            with open(f"/proc/{self.pid}/status") as status:
                lines = dict(line.split(":", 1) for line in status)
            self.resident.append(int(lines["VmRSS"].split()[0]))
        except (OSError, KeyError):
            return
        if shutil.which("nvidia-smi"):
            query = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
            answer = subprocess.run(query, capture_output=True, text=True).stdout.splitlines()
            used = [int(line.split(",")[1]) for line in answer if line.split(",")[0] == str(self.pid)]
            if used:
                self.card.append(used[0] * 1024)


def judge_memory(name, what, samples, problems):
    """Flat from the end of the warm-up, the first fifth, to the end."""
    if not samples:
        print(f"{name}: {what} was not seen")
        return
    settled = samples[len(samples) // 5 :]
    third = max(1, len(settled) // 3)
    first, last = statistics.median(settled[:third]), statistics.median(settled[-third:])
    slack = max(first / 100, SLACK_KIB)
    print(
        f"{name}: {what} {first / 1024:.1f} MiB after the warm-up, {last / 1024:.1f} at the end, at most {max(settled) / 1024:.1f}"
        f" ({len(samples)} samples)"
    )
    if last - first > slack:
        problems.append(f"{name}: {what} grew by {(last - first) / 1024:.1f} MiB, {slack / 1024:.1f} are allowed")
    if max(settled) - first > 2 * slack:
        problems.append(f"{name}: {what} rose to {max(settled) / 1024:.1f} MiB for a time")


def run(name, arguments, seconds, folder, problems):
    """The program until its own time limit ends it, its JSON lines, with its memory judged."""
    command = [PROGRAM, *arguments, "--time-limit", f"{seconds}s", "--json", "--progress", "json", "--device", DEVICE]
    if os.environ.get("THREADS"):
        command += ["--threads", os.environ["THREADS"]]
    path = os.path.join(folder, f"{name}.out")
    with open(path, "w") as out:
        child = subprocess.Popen(command, stdout=out)
        memory = Memory(child.pid)
        deadline = time.monotonic() + 2 * seconds + 120
        try:
            while child.poll() is None:
                if time.monotonic() > deadline:
                    problems.append(f"{name}: did not stop at its time limit of {seconds} s")
                    break
                memory.sample()
                time.sleep(1)
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
    judge_memory(name, "resident memory", memory.resident, problems)
    if memory.card:
        judge_memory(name, "memory of the card", memory.card, problems)
    # 1: the time limit ended a search that has no end of its own.
    if child.returncode not in (0, 1):
        problems.append(f"{name}: exit code {child.returncode}")
    with open(path) as out:
        return [json.loads(line) for line in out]


def keys_of(path):
    """The JSON lines of an output file."""
    with open(path) as lines:
        return [json.loads(line) for line in lines]


def choose_pattern():
    """As many characters as it takes to have a match now and then. A match ends its origin, and with it all that was found beside
    it in the same batch; so that these are few, a match must come far more seldom than a batch, which is long on a card."""
    command = [PROGRAM, "npub", "aaaa", "--estimate", "--json", "--device", DEVICE]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    rate, seconds = json.loads(answer.splitlines()[0])["rate"], 0.03 if DEVICE.startswith("cpu") else 2
    return "a" * next(length for length in range(3, 50) if 32**length > seconds * rate)


def chance_of(count, expected):
    """The chance of a count as far from its expectation as this one, or farther, on its side (Poisson)."""
    logs = lambda n: n * math.log(expected) - expected - math.lgamma(n + 1)
    if expected == 0:
        return 1.0
    if count < expected:
        return sum(math.exp(logs(n)) for n in range(count + 1))
    return sum(math.exp(logs(n)) for n in range(count, count + 200 + 20 * math.isqrt(count + 1)))


def soak_search(seconds, rows, folder, problems):
    """Many matches: each right, each announced, as many as the odds say."""
    pattern = os.environ.get("PATTERN") or choose_pattern()
    output = os.path.join(folder, "search.keys")
    events = run("search", ["npub", pattern, "--count", "0", "--output", output], seconds, folder, problems)
    tried = max((int(event["tried"]) for event in events if "tried" in event), default=0)
    announced = [event for event in events if event["event"] == "match"]
    found = keys_of(output) if os.path.exists(output) else []
    wrong = 0
    for entry in found:
        address = npub(x_of(int(entry["secret_key"], 16), rows))
        wrong += address != entry["address"] or not address.startswith("npub1" + pattern)
    if wrong:
        problems.append(f"search: {wrong} of {len(found)} results are wrong")
    if [entry["address"] for entry in announced] != [entry["address"] for entry in found]:
        problems.append(f"search: {len(announced)} results announced, {len(found)} in the file")
    if len({entry["secret_key"] for entry in found}) != len(found):
        problems.append("search: a key came twice")
    # A progress line comes after all matches it counts, and the last one up to a second before the end.
    expected = tried / 32 ** len(pattern)
    chance = chance_of(len(found), expected)
    print(f"search: {tried:,} keys tried, {len(found)} matches of {expected:.1f} expected, {wrong} wrong")
    if chance < LEAST_CHANCE:
        problems.append(f"search: {len(found)} matches do not fit {expected:.1f} expected")


def soak_scan(seconds, rows, folder, problems):
    """Planted keys, ever farther apart: exactly those of the stretch that the map says was covered, each once."""
    start, step = 2**70, 2**15
    planted = {}
    while step < 2**52:
        key = start + step
        planted[rawtr(x_of(key, rows))] = key
        step += max(1, step // 200) + step % 3
    targets, output, map_ = (os.path.join(folder, name) for name in ("scan.txt", "scan.keys", "scan.map"))
    with open(targets, "w") as out:
        out.write("".join(address + "\n" for address in planted))
    arguments = ["scan", "--range", f"{start:x}:{start + 2**53 - 1:x}", "--targets", targets, "--type", "rawtr"]
    events = run("scan", arguments + ["--map", map_, "--output", output], seconds, folder, problems)
    with open(map_) as lines:
        covered = [line.split()[1] for line in lines if line.startswith("covered ")]
    ranges = [tuple(int(bound, 16) for bound in part.split(":")) for part in covered]
    total = sum(last - first + 1 for first, last in ranges)
    inside = {address for address, key in planted.items() if any(first <= key <= last for first, last in ranges)}
    found = keys_of(output) if os.path.exists(output) else []
    wrong = [entry for entry in found if planted.get(entry["address"]) != int(entry["secret_key"], 16)]
    addresses = [entry["address"] for entry in found]
    print(f"scan: {total:,} keys covered, {len(set(addresses) & inside)} of {len(inside)} planted keys found, {len(wrong)} wrong")
    if wrong:
        problems.append(f"scan: {len(wrong)} results are wrong")
    if not inside <= set(addresses):
        problems.append(f"scan: {len(inside - set(addresses))} planted keys were missed")
    if len(set(addresses)) != len(addresses):
        problems.append("scan: a key was reported twice")
    done = [event for event in events if event["event"] == "done"]
    if not done or int(done[-1]["covered"]) != total:
        problems.append("scan: the map and the last line differ on what was covered")
    if not inside:
        problems.append("scan: too short to reach a planted key")


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 3600
    if not os.access(PROGRAM, os.X_OK):
        sys.exit(f"no program at {PROGRAM}: build it with `cargo build --release`, or name it in WARPSMITH")
    if seconds < 10:
        sys.exit(f"{seconds} seconds are too few to tell a warm-up from growth: at least 10")
    started, rows, problems = time.monotonic(), table(), []
    folder = tempfile.mkdtemp(prefix="warpsmith-soak-")
    try:
        soak_search(seconds // 2, rows, folder, problems)
        soak_scan(seconds - seconds // 2, rows, folder, problems)
    finally:
        shutil.rmtree(folder)
    for problem in problems:
        print(f"FAILED: {problem}")
    print(f"soak: {'failed' if problems else 'passed'} in {time.monotonic() - started:.0f} s on {DEVICE}")
    sys.exit(1 if problems else 0)


PROGRAM = os.environ.get("WARPSMITH", os.path.join(os.path.dirname(__file__), "..", "target", "release", "warpsmith"))
DEVICE = sys.argv[2] if len(sys.argv) > 2 else "cpu"

if __name__ == "__main__":
    main()
