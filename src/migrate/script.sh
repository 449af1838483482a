#!/bin/sh
# Copies a git repository to another place, repairs and verifies the copy, and gives it its name at the end.
# Written by rehome for exactly these two places; needs git and GNU coreutils. The source is only read.
set -eu
SRC=@SOURCE@
DEST=@DESTINATION@
PART=@PARTIAL@
TREE=$PART/tree
PRIVATE=$PART/git
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR \
    GIT_NAMESPACE GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT GIT_EXTERNAL_DIFF GIT_PREFIX

die() {
    printf '%s\n' "$1" >&2
    exit 1
}

# git with a private git dir: it sees the objects and refs of the copy, and none of the configuration that the
# repository holds (which can name programs).
g() {
    GIT_DIR=$PRIVATE GIT_WORK_TREE=$TREE GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_NO_LAZY_FETCH=1 \
        GIT_TERMINAL_PROMPT=0 LC_ALL=C git -C "$TREE" -c core.fsmonitor=false -c core.hooksPath=/dev/null "$@"
}

# Whether a path, relative to the repository, is left out; whether something below it is.
is_left_out() {
    case $1 in
@LEFT_OUT@
    *) return 1 ;;
    esac
}
leads_to_left_out() {
    case $1 in
@LEADING@
    *) return 1 ;;
    esac
}

# 1. Before anything is written.
[ -e "$SRC/.git/HEAD" ] || die "$SRC is no repository with a git dir of its own"
for lock in index.lock HEAD.lock MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD BISECT_LOG rebase-merge rebase-apply; do
    [ ! -e "$SRC/.git/$lock" ] || die "$SRC/.git/$lock is there: finish that operation first"
done
[ ! -e "$DEST" ] && [ ! -L "$DEST" ] || die "$DEST is there already"
[ ! -e "$PART" ] || die "$PART is left from an earlier run: remove it"
mkdir -p -- "${DEST%/*}/"
mkdir -m 700 -- "$PART"
mkdir -- "$TREE" "$PRIVATE"

# 2. Copy. $1 is a directory relative to the source, with a slash at its end, or empty.
copy() (
    directory=$1
    shift
    for from in "$SRC/$directory"* "$SRC/$directory".[!.]* "$SRC/$directory"..?*; do
        [ -e "$from" ] || [ -L "$from" ] || continue
        name=${from#"$SRC/"}
        if is_left_out "$name"; then
            continue
        elif leads_to_left_out "$name"; then
            mkdir -- "$TREE/$name"
            copy "$name/"
            chmod --reference="$from" -- "$TREE/$name"
            touch --reference="$from" -- "$TREE/$name"
        else
            set -- "$@" "$from"
        fi
    done
    [ $# -eq 0 ] || cp -a -- "$@" "$TREE/$directory"
)
copy ''
sync

# 3. Compare every byte by its hash. A source that changed meanwhile differs too.
sums() (
    cd -- "$1"
    walk() (
        directory=$1
        shift
        for name in "$directory"* "$directory".[!.]* "$directory"..?*; do
            if [ -L "$name" ]; then
                printf 'link %s -> %s\n' "$name" "$(readlink -- "$name")"
            elif [ -d "$name" ]; then
                if ! is_left_out "${name#./}"; then
                    printf 'directory %s\n' "$name"
                    walk "$name/"
                fi
            elif [ -f "$name" ]; then
                set -- "$@" "$name"
            fi
        done
        [ $# -eq 0 ] || sha256sum -- "$@"
    )
    walk ./
)
sums "$TREE" >"$PART/copy.sums"
sums "$SRC" >"$PART/source.sums"
[ "$(sha256sum <"$PART/copy.sums")" = "$(sha256sum <"$PART/source.sums")" ] ||
    die "copy and source differ; compare $PART/copy.sums and $PART/source.sums"

# 4. The private git dir.
for part in objects refs packed-refs logs info shallow reftable; do
    if [ -e "$TREE/.git/$part" ]; then ln -s -- "$TREE/.git/$part" "$PRIVATE/$part"; fi
done
for part in "$TREE"/.git/HEAD "$TREE"/.git/index "$TREE"/.git/sharedindex.*; do
    if [ -f "$part" ]; then cp -- "$part" "$PRIVATE/"; fi
done
cat >"$PRIVATE/config" <<'END_OF_CONFIG'
@CONFIG@
END_OF_CONFIG
@CLEAN@
g status --porcelain=v1 --no-renames --ignore-submodules=all --untracked-files=@UNTRACKED@ >"$PART/raw"
sort "$PART/raw" >"$PART/before"
: >"$PART/artefacts"

# 5. Repair. Files that differ from the index by CRLF alone are written as attributes and configuration ask. Names
# that git prints in quotes (control characters) are left as they are.
g -c core.quotePath=false diff-files --name-only --diff-filter=M | while IFS= read -r name; do
    case $name in '"'*) continue ;; esac
    case $(g check-attr text -- "$name") in *': unset') continue ;; esac
    if [ -z "$(g diff-files -p --ignore-cr-at-eol --no-ext-diff --no-textconv -- ":(literal)$name")" ]; then
        g checkout-index --force -- "$name"
        if [ -e "$SRC/$name" ]; then touch --no-dereference --reference="$SRC/$name" -- "$TREE/$name"; fi
        g status --porcelain=v1 --no-renames --untracked-files=no -- ":(literal)$name" >"$PART/left"
        [ -s "$PART/left" ] || printf ' M %s\n' "$name" >>"$PART/artefacts"
    fi
done

# Files that the old side could not hold beside a name that differs by case alone: $1, unless what is there is its own.
collided() {
    if [ ! -e "$TREE/$1" ]; then
        printf ' D %s\n' "$1" >>"$PART/artefacts"
    elif [ "$(g hash-object -- "$1")" = "$2" ]; then
        printf ' M %s\n' "$1" >>"$PART/artefacts"
    else
        return 0
    fi
    g checkout-index --force -- "$1"
}
@COLLISIONS@

# Links that were written as text, and modes from the index.
g -c core.quotePath=false ls-files --stage | while IFS='	' read -r entry name; do
    case $name in '"'*) continue ;; esac
    case $entry in
    120000*)
        if [ -f "$TREE/$name" ] && [ ! -L "$TREE/$name" ] && @LINKS_ARE_TEXT@; then
            target=$(cat -- "$TREE/$name")
            rm -- "$TREE/$name"
            ln -s -- "$target" "$TREE/$name"
            touch --no-dereference --reference="$SRC/$name" -- "$TREE/$name"
        fi
        ;;
    esac
done
@MODES@

# Settings that describe the filesystem, and paths between git dirs.
@SETTINGS@

# 6. The index knows the new files; then git must report what it reported before, less the artefacts.
printf '%s\n' '[core]' @NEW_CORE@ >>"$PRIVATE/config"
g update-index -q --refresh || :
g status --porcelain=v1 --no-renames --ignore-submodules=all --untracked-files=@UNTRACKED@ >"$PART/raw"
sort "$PART/raw" >"$PART/after"
sort "$PART/artefacts" >"$PART/expected"
comm -23 "$PART/before" "$PART/after" >"$PART/gone"
comm -13 "$PART/before" "$PART/after" >"$PART/new"
[ ! -s "$PART/new" ] || die "git reports changes that the source does not have; see $PART/new"
[ -z "$(comm -3 "$PART/gone" "$PART/expected")" ] || die "git does not report a real change any more; see $PART/gone"
g fsck --full --no-dangling --no-progress || die "git fsck finds the copy damaged, and so the source"
if [ -f "$PRIVATE/index" ]; then cp -- "$PRIVATE/index" "$TREE/.git/index"; fi

# 7. The name.
touch --reference="$SRC" -- "$TREE"
chmod @ROOT_MODE@ -- "$TREE"
sync
[ ! -e "$DEST" ] && [ ! -L "$DEST" ] || die "$DEST appeared meanwhile; the copy is in $TREE"
mv -T -- "$TREE" "$DEST"
if [ -s "$PART/gone" ]; then
    printf '%s\n' 'Artefacts of the old side that are gone:'
    cat -- "$PART/gone"
fi
rm -rf -- "$PART"
printf '%s\n' "Moved to $DEST"
@RESTORE@
printf '%s\n' "The old copy is as it was in $SRC"
