#!/bin/sh
# Compares the `stat` workload with a C loop over the same paths, and the copy's `git status` with a true checkout's.
#
#     cargo build --release --example measure --bin rehome && benches/stat-loop.sh REPO [TARGET] [TURNS]
#
# REPO must be a clean checkout on the target's filesystem: then the two sides of the measurement are a true copy and
# the skeleton, so their ratio should be 1. Turns alternate, because other work on the machine comes and goes.
set -eu
repo=$1 target=${2:-${TMPDIR:-/tmp}} turns=${3:-5}
measure=${MEASURE:-target/release/examples/measure} rehome=${REHOME:-target/release/rehome}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc -O2 -o "$work/stat-loop" "$(dirname "$0")/stat-loop.c"
git -C "$repo" ls-files -z > "$work/paths"
for turn in $(seq "$turns"); do
	"$work/stat-loop" "$repo" 11 < "$work/paths" >> "$work/c"
	# Without a copy, as the C loop: with one, the two sides take turns and each finds the other's data in the caches.
	"$rehome" check "$repo" --rounds 11 --format json | jq -c . >> "$work/alone"
	"$measure" "$repo" "$target" --budget 60 --rounds 11 >> "$work/rehome"
done
python3 - "$work" <<'P'
import json, statistics, sys
work = sys.argv[1]
c = [float(line) for line in open(work + "/c")]
runs = [{m["workload"]: m for m in json.loads(line)["measurements"]} for line in open(work + "/rehome")]
alone = [{m["workload"]: m for m in json.loads(line)["measurements"]} for line in open(work + "/alone")]
stat = [run["stat"]["in_place"]["median"] * 1e9 for run in alone]
ratio = [run["git_status"]["in_copy"]["median"] / run["git_status"]["in_place"]["median"] for run in runs]
print(f"stat, ns a call: C {statistics.median(c):.0f} (best {min(c):.0f}), rehome {statistics.median(stat):.0f} (best "
      f"{min(stat):.0f}): {100 * (statistics.median(stat) / statistics.median(c) - 1):+.1f} %, best against best "
      f"{100 * (min(stat) / min(c) - 1):+.1f} %")
print(f"git status, skeleton over true checkout: median {statistics.median(ratio):.3f}, {min(ratio):.3f} to {max(ratio):.3f}")
P
