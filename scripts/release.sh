# shellcheck shell=bash
# Functions shared by scripts/bundle, scripts/deb and scripts/wheel; sourced after common.sh. They decide what is
# shipped, and check it.

release_floor=2.28 # the oldest glibc to support: that of RHEL 8 and of PyTorch's wheels

build_release() {
  cmake --preset release --log-level=WARNING >/dev/null &&
    cmake_build --preset release --target gmt_program gpumemtrace-collector gpumemtrace
}

# copy_release BUILD DIR: copies the programs, the preloaded library, the licences of what is linked
# into them, documentation, manual pages, completions and the header for marks in C.
copy_release() {
  mkdir -p "$2"/{bin,lib}
  install -D -m 644 -t "$2/include" share/development/gpumemtrace.h
  copy_shell_files "$1/bin/gpumemtrace" "$2/share"
  install -s "$1"/bin/gpumemtrace "$1"/bin/gpumemtrace-collector "$2/bin"
  install -s -m 644 "$1/lib/libgpumemtrace.so" "$2/lib"
  copy_documentation "$2/share/doc/gpumemtrace"
  copy_licences "$2/share/doc/gpumemtrace/licences"
}

# copy_documentation DIR: copies the pages as they are, in the directories of the tree, so that the
# links between them and to pictures work.
copy_documentation() {
  install -D -m 644 -t "$1" README.md CHANGELOG.md LICENSE
  install -D -m 644 -t "$1/docs" docs/*.md
  install -D -m 644 -t "$1/docs/img" docs/img/*.png
  install -D -m 644 -t "$1/docs/schemas" docs/schemas/*
  install -D -m 644 -t "$1/python" python/README.md
}

# copy_shell_files PROGRAM DIR: writes its manual pages and completions below DIR, in the folders
# in which man and the shells look.
copy_shell_files() {
  local epoch verb
  epoch=$(source_date)
  mkdir -p "$2"/{man/man1,bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
  "$1" completion bash >"$2/bash-completion/completions/gpumemtrace"
  "$1" completion zsh >"$2/zsh/vendor-completions/_gpumemtrace"
  "$1" completion fish >"$2/fish/vendor_completions.d/gpumemtrace.fish"
  SOURCE_DATE_EPOCH=$epoch "$1" man | gzip -9n >"$2/man/man1/gpumemtrace.1.gz"
  for verb in $("$1" completion --words -- "" | sed -n '2,$s/\t.*//p'); do
    SOURCE_DATE_EPOCH=$epoch "$1" man "$verb" | gzip -9n >"$2/man/man1/gpumemtrace-$verb.1.gz"
  done
}

# pack_deb DIR OUT: packs what copy_release wrote to DIR into a Debian package in OUT, and prints its
# path.
pack_deb() {
  local release=$1 tree=$1/debian version epoch libraries file
  version=$("$release/bin/gpumemtrace" --version | cut -d ' ' -f 2)
  epoch=$(source_date)
  libraries=$tree/usr/lib/x86_64-linux-gnu
  rm -rf "$tree"
  mkdir -p "$tree"/{DEBIAN,usr/share/doc/gpumemtrace} "$libraries"
  cp -r "$release"/{bin,include} "$tree/usr"
  cp -r "$release"/share/{man,bash-completion,zsh,fish} "$tree/usr/share"
  cp -r "$release"/share/doc/gpumemtrace/{README.md,docs,python} "$tree/usr/share/doc/gpumemtrace"
  install -m 644 "$release/lib/libgpumemtrace.so" "$libraries"
  install -D -m 644 share/debian/lintian-overrides "$tree/usr/share/lintian/overrides/gpumemtrace"
  install -D -m 644 -t "$libraries/pkgconfig" share/development/gpumemtrace.pc
  install -D -m 644 -t "$libraries/cmake/gpumemtrace" share/development/*.cmake
  sed -i "s/@VERSION@/$version/" "$libraries/pkgconfig/gpumemtrace.pc" "$libraries"/cmake/gpumemtrace/*.cmake
  debian_copyright "$release/share/doc/gpumemtrace/licences" >"$tree/usr/share/doc/gpumemtrace/copyright"
  gzip -9n <CHANGELOG.md >"$tree/usr/share/doc/gpumemtrace/changelog.gz"
  printf 'gpumemtrace (%s-1) unstable; urgency=medium\n\n  * Release %s.\n\n -- %s  %s\n' "$version" "$version" \
    "$(sed -n 's/^Maintainer: //p' share/debian/control)" "$(LC_ALL=C date -u -R -d "@$epoch")" |
    gzip -9n >"$tree/usr/share/doc/gpumemtrace/changelog.Debian.gz"
  (cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  sed "s/@VERSION@/$version/; s/@GLIBC@/$release_floor/; s/@SIZE@/$(du -sk --apparent-size "$tree/usr" | cut -f 1)/" \
    share/debian/control >"$tree/DEBIAN/control"
  # Neither the umask nor the number of processors changes the package.
  chmod -R u=rwX,go=rX "$tree"
  file=$2/gpumemtrace_$version-1_amd64.deb
  SOURCE_DATE_EPOCH=$epoch DPKG_DEB_THREADS_MAX=1 dpkg-deb --root-owner-group -Zxz --build "$tree" "$file" >&2 &&
    printf '%s\n' "$file"
}

# debian_copyright DIR: prints the copyright file of the package, with the notices in DIR. Debian has
# the licences of GNU and of Apache on every system, and wants them to be named instead of repeated.
debian_copyright() {
  local notice
  cat share/debian/copyright
  for notice in "$1"/*; do
    [[ $(basename "$notice") =~ ^L?GPL ]] && continue
    printf '\n---- %s ----\n\n' "$(basename "$notice")"
    sed '/^ *Apache License$/,/^ *END OF TERMS AND CONDITIONS$/{
      /^ *Apache License$/!d
      s|.*|The text of the Apache License, version 2.0, is in /usr/share/common-licenses/Apache-2.0.|
    }' "$notice"
  done
}

copy_licences() {
  local package text
  mkdir -p "$1"
  for package in libabsl-dev libprotobuf-dev libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libevent-dev libre2-dev \
    libdw-dev libzstd-dev zlib1g-dev liblzma-dev libbz2-dev libsqlite3-dev libncurses-dev libedit-dev libbsd-dev libmd-dev \
    "libstdc++-$(gcc -dumpversion)-dev"; do
    text=/usr/share/doc/$package/copyright
    [[ -e $text ]] || fail "$text does not exist: install $package with its documentation"
    install -m 644 "$text" "$1/${package%-dev}"
  done
  # elfutils (libdw) refers to these.
  install -m 644 -t "$1" /usr/share/common-licenses/{GPL-2,GPL-3,LGPL-3}
  # The notices of nanoarrow are in its sources; its licence is that of flatcc.
  {
    sed -n '1,/^$/s|^// \{0,1\}||p' "${cache:?}/nanoarrow/src/nanoarrow/nanoarrow.h"
    cat "$cache"/nanoarrow/flatcc/{LICENSE,NOTICE,include/flatcc/portable/LICENSE}
  } >"$1/nanoarrow"
  # The viewer page, which is embedded in the program, contains Preact.
  [[ ! -e viewer/page/node_modules/preact/LICENSE ]] || install -m 644 viewer/page/node_modules/preact/LICENSE "$1/preact"
}

# Prints the time stamp of shipped files, that of the commit, so that builds of the same source are
# equal.
source_date() {
  printf '%s\n' "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CMakeLists.txt)}"
}

# Libraries that every system has, and that must be the system's own.
is_glibc() { [[ $1 =~ ^(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libutil)\.so ]]; }

# is_older A B: compares versions.
is_older() { [[ $1 != "$2" && $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]; }

highest_glibc() { objdump -T "$1" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -Vu | tail -n 1; }

# check_glibc FLOOR FILE...: checks that the files run with that glibc.
check_glibc() {
  local floor=$1 file highest failed=0
  for file in "${@:2}"; do
    highest=$(highest_glibc "$file")
    printf '%-28s needs glibc %-6s (limit %s)\n' "$(basename "$file")" "$highest" "$floor"
    if is_older "$floor" "$highest"; then
      objdump -T "$file" | grep -F "GLIBC_$highest"
      failed=1
    fi
  done
  return "$failed"
}

# check_release DIR: checks that programs and library need glibc, not too new, and nothing else.
check_release() {
  local file name _
  for file in "$1"/bin/* "$1"/lib/*; do
    while read -r name _; do
      is_glibc "$(basename "$name")" || fail "$file needs $name, which should be linked into it (cmake/StaticDependencies.cmake)"
    done < <(ldd "$file")
  done
  check_glibc "$release_floor" "$1"/bin/* "$1"/lib/*
  env -i "$1/bin/gpumemtrace" --version
}

# check_size PATH MIB: checks that it is small enough to be copied casually.
check_size() {
  local size
  size=$(du -sk "$1" | cut -f 1)
  printf '%-28s %d.%d MiB (limit %d)\n' "$(basename "$1")" $((size / 1024)) $((size % 1024 * 10 / 1024)) "$2"
  ((size <= $2 * 1024))
}
