#!/bin/sh
# toolcall-adapter in one file: this script, and an archive that it unpacks to the cache folder at the first start.
set -e
cache=${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/toolcall-adapter
folder=$cache/one-file-@IDENTITY@
if [ ! -e "$folder" ]; then
    mkdir -p "$cache"
    new=$(mktemp -d "$folder.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    tail -n +@LINE@ "$0" | gzip -dc | tar -xf - -C "$new"
    # Another process may have been faster; then this folder is moved into the other one.
    mv "$new" "$folder" 2>/dev/null || [ -e "$folder/adapter" ]
    rm -rf "$new" "$folder/${new##*/}"
    trap - EXIT
fi
exec "$folder/adapter" "$@"
