#!/bin/bash
# Times `rehome move`, verification included, against cp -a, rsync -a, tar | tar and git clone --no-local, on a mount
# with a delay per request and on a local disk.
#
# usage: benches/move.sh [FILES...]         (default: 1000 10000)
# environment: DELAY_US=1000  PARALLEL="8 0" (0: no limit)  TOOLS="rehome rsync cp tar clone"  WORK=directory on ext4
#              LOCAL=1 (also from disk to disk)  LIMIT=600 (seconds after which a tool is stopped)
# needs: a release build (cargo build --release --bin rehome --example slowmount), /dev/fuse, rsync, git
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
rehome=${REHOME:-$root/target/release/rehome}
slowmount=${SLOWMOUNT:-$root/target/release/examples/slowmount}
delay=${DELAY_US:-1000}
limit=${LIMIT:-600}
work=${WORK:-$(mktemp -d "${TMPDIR:-/tmp}/rehome-bench-XXXXXX")}
mkdir -p "$work/home"
export HOME=$work/home GIT_CONFIG_NOSYSTEM=1
mounted=
cleanup() {
    [ -z "$mounted" ] || kill "$mounted" 2>/dev/null || :
    wait 2>/dev/null || :
    rm -rf "$work"
}
trap cleanup EXIT

# A repository of $1 files in the shape of the measuring note: 12 files a directory, three to six levels.
make_repository() {
    python3 - "$work/source" "$1" <<'PYTHON'
import os, random, sys
root, count = sys.argv[1], int(sys.argv[2])
random.seed(1)
for number in range((count + 11) // 12):
    depth = 2 + number % 4
    path = os.path.join(root, *[f"d{(number // 7 ** level) % 7}" for level in range(depth)], f"n{number}")
    os.makedirs(path, exist_ok=True)
    for file in range(min(12, count - number * 12)):
        with open(os.path.join(path, f"f{file}.txt"), "wb") as out:
            out.write(random.randbytes(random.choice([200, 900, 2500, 6000, 20000])).hex().encode())
PYTHON
    git -C "$work/source" init -q
    git -C "$work/source" add -A
    git -C "$work/source" -c user.name=b -c user.email=b@example.org -c gc.auto=0 -c maintenance.auto=false commit -q -m all
    git -C "$work/source" gc -q
}

copy_with() {
    case $1 in
    rehome) timeout "$limit" "$rehome" move "$2" "$work/dest" --yes -q --target-fs ext4,btrfs,xfs,overlay >"$work/said" ;;
    rsync) timeout "$limit" rsync -a "$2/" "$work/dest/" ;;
    cp) timeout "$limit" cp -a "$2" "$work/dest" ;;
    tar) mkdir "$work/dest" && timeout "$limit" tar -C "$2" -cf - . | tar -C "$work/dest" -xf - ;;
    clone) timeout "$limit" git -c safe.directory='*' clone -q --no-local "$2" "$work/dest" ;;
    esac
}

# Prints one line: tool, seconds, and the ratio to rehome's time.
measure() {
    rm -rf "$work/dest" "$work/.dest.rehome-partial"
    sync
    local begun ended status=0
    begun=$(date +%s.%N)
    copy_with "$1" "$2" || status=$?
    ended=$(date +%s.%N)
    local took
    took=$(echo "$ended $begun" | awk '{ printf "%.2f", $1 - $2 }')
    [ "$1" = rehome ] && reference=$took
    [ "$status" = 0 ] || took=">$took (status $status)"
    printf '%-28s %-7s %12s s' "$3" "$1" "$took"
    [ -z "${reference:-}" ] || echo "${took%% *} $reference" | tr -d '>' | awk '{ printf "   %6.2f x rehome", $1 / $2 }'
    printf '\n'
}

for files in "${@:-1000 10000}"; do
    for count in $files; do
        rm -rf "$work/source"
        make_repository "$count"
        for parallel in ${PARALLEL-8 0}; do
            mkdir -p "$work/mount"
            "$slowmount" "$work/source" "$work/mount" --delay-us "$delay" --parallel "$parallel" >/dev/null &
            mounted=$!
            until mountpoint -q "$work/mount"; do sleep 0.05; done
            reference=
            for tool in ${TOOLS:-rehome rsync cp tar clone}; do
                measure "$tool" "$work/mount" "$count files, parallel $parallel"
            done
            kill "$mounted"
            wait "$mounted" || :
            mounted=
        done
        if [ "${LOCAL:-0}" = 1 ]; then
            reference=
            for tool in ${TOOLS:-rehome rsync cp tar}; do
                measure "$tool" "$work/source" "$count files, disk to disk"
            done
        fi
    done
done
