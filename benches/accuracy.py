#!/usr/bin/env python3
"""Compares predictions of `git status` with the truth, on repositories behind a slow mount.

    cargo build --release --example measure --example slowmount
    benches/accuracy.py [--bin target/release/examples] [--sizes 1000,10000,90000] [--delays 1000:1,1000:8,3000:8]
                        [--runs 5] [--truths 3] [--budget 10] [--work DIR]

Prints one line of a Markdown table for each repository and mount: the median of the predictions, the median of the
true times, the error of that median, the worst error of a single run, how often the truth lay in the interval, how
long an answer took, and the largest memory of the process that gave it. Repositories are made once, with 12 files a
directory at depths 3 to 6, and kept in the work directory.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

CLEAN = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
CLEAN.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1", GIT_OPTIONAL_LOCKS="0", LC_ALL="C")


def git(root, *args):
    names = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", "-C", root, *names, *args], check=True, env=CLEAN, stdout=subprocess.DEVNULL)


def make(root, files):
    """Makes a clean repository with settled times, once."""
    if os.path.exists(os.path.join(root, ".git", "made")):
        return
    chance = random.Random(files)
    os.makedirs(root)
    git(root, "init", "-q")
    for number in range(files // 12):
        levels = [f"d{chance.randrange(8)}" for _ in range(chance.choice([1, 2, 3, 4]))]
        path = os.path.join(root, *levels, f"m{number // 8}", f"p{number}")
        os.makedirs(path, exist_ok=True)
        for file in range(12):
            with open(os.path.join(path, f"file{file}.txt"), "w") as out:
                out.write("x" * chance.randrange(2000))
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")
    old = time.time() - 86_400
    for directory, _, names in os.walk(root):
        if ".git" not in directory.split(os.sep):
            for name in names:
                os.utime(os.path.join(directory, name), (old, old))
    git(root, "update-index", "-q", "--refresh")
    git(root, "repack", "-adq")
    open(os.path.join(root, ".git", "made"), "w").close()


def mounted(binaries, backing, delay_us, parallel):
    """Mounts a directory slowly; returns the process and the mount point."""
    point = tempfile.mkdtemp(prefix="accuracy-")
    command = [f"{binaries}/slowmount", backing, point, "--delay-us", delay_us, "--parallel", parallel]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not os.path.ismount(point):
        if process.poll() is not None:
            sys.exit("the slow mount ended")
        time.sleep(0.02)
    return process, point


def predict(binaries, point, target, budget):
    """Runs one measurement; returns its report, its time and its memory in MB."""
    command = [f"{binaries}/measure", point, target, "--budget", str(budget)]
    with tempfile.TemporaryFile() as out:
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        elapsed = time.monotonic() - started
        if status != 0:
            sys.exit("the measurement failed")
        out.seek(0)
        report = json.load(out)
    # The time to the answer: what follows is the removal of the copy.
    return report, min(report["wall_s"], elapsed), usage.ru_maxrss / 1024


def truth(point):
    started = time.monotonic()
    subprocess.run(["git", "-C", point, "status", "--porcelain"], check=True, env=CLEAN, stdout=subprocess.DEVNULL)
    return time.monotonic() - started


def compare(args, root, target, delay):
    """Measures and times one repository behind one mount; returns the line of the table."""
    delay_us, parallel = delay.split(":")
    process, point = mounted(args.bin, root, delay_us, parallel)
    truths, found, times, memory = [], [], [], []
    try:
        # In turn, so that drift of the machine hits both.
        for turn in range(max(args.runs, args.truths)):
            if turn < args.truths:
                truths.append(truth(point))
            if turn < args.runs:
                report, elapsed, size_mb = predict(args.bin, point, target, args.budget)
                times.append(elapsed)
                memory.append(size_mb)
                found += [m["in_place"] for m in report["measurements"] if m["workload"] == "git_status"]
    finally:
        process.terminate()
        process.wait()
        os.rmdir(point)
    true = statistics.median(truths)
    errors = [100 * (one["median"] / true - 1) for one in found]
    inside = sum(1 for one in found if (one.get("low") or 0) <= true <= (one.get("high") or 0))
    predicted = statistics.median(one["median"] for one in found)
    methods = "/".join(sorted({one["method"] for one in found}))
    return (
        f"{int(delay_us) / 1000:g} ms, {parallel} | {methods} | {predicted:.2f} "
        f"| {true:.2f} ({min(truths):.2f} to {max(truths):.2f}) | {100 * (predicted / true - 1):+.1f} "
        f"| {max(errors, key=abs):+.1f} | {inside} of {len(found)} | {max(times):.1f} | {max(memory):.0f}"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="target/release/examples")
    parser.add_argument("--sizes", default="1000,10000,90000")
    parser.add_argument("--delays", default="1000:1,1000:8,3000:8")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--truths", type=int, default=3)
    parser.add_argument("--budget", type=float, default=10)
    parser.add_argument("--work", default=os.path.join(tempfile.gettempdir(), "rehome-accuracy"))
    args = parser.parse_args()
    target = os.path.join(args.work, "target")
    os.makedirs(target, exist_ok=True)
    print("| files | delay, at once | method | predicted s | true s | error % | worst % | in interval | answer s | MB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for size in (int(size) for size in args.sizes.split(",")):
        root = os.path.join(args.work, f"r{size}")
        make(root, size)
        for delay in args.delays.split(","):
            print(f"| {size} | {compare(args, root, target, delay)} |", flush=True)


if __name__ == "__main__":
    main()
