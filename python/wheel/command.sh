#!/bin/sh
# Starts the program of this name that is part of the Python package gpumemtrace, without starting
# Python. The package is found relative to this file, in the directories that pip uses: those of a
# virtual environment, of --user, of --prefix and of --target.
version=@VERSION@
self=$(readlink -f "$0") || exit 127
name=${self##*/}
prefix=${self%/*/*}
for packages in "$prefix"/lib*/python*/*-packages "$prefix"/lib*/pypy*/*-packages "$prefix"; do
  # Several Pythons may share a prefix, and have different versions of the package.
  [ -d "$packages/gpumemtrace-$version.dist-info" ] || continue
  [ -x "$packages/gpumemtrace/bin/$name" ] && exec "$packages/gpumemtrace/bin/$name" "$@"
done
echo "$name: the Python package gpumemtrace $version is not below $prefix. Use python -m gpumemtrace, or install it again" >&2
exit 127
