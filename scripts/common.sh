# shellcheck shell=bash disable=SC2034
# Functions shared by the scripts; sourced, not run. Sets `root` (the tree) and `cache` (what setup has
# downloaded).

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${XDG_CACHE_HOME:-${HOME:?neither XDG_CACHE_HOME nor HOME is set}/.cache}/gpumemtrace
script=scripts/$(basename "$0")

# Prefer headers downloaded by setup over a system toolkit that setup rejected as too old.
if [[ -z ${CUDAToolkit_ROOT:-} && -e $cache/cuda-headers/include/cuda.h ]]; then
  export CUDAToolkit_ROOT=$cache/cuda-headers
fi

say() { printf '%s\n' "$*"; }

fail() {
  printf '%s: %s\n' "$script" "$*" >&2
  exit 1
}

# retry WHAT COMMAND...: tries up to three times, because registries and mirrors fail temporarily.
retry() {
  local what=$1 try
  shift
  for try in 1 2 3; do
    "$@" && return
    [[ $try == 3 ]] || { say "$what failed; retrying in $((try * 5)) s" >&2 && sleep $((try * 5)); }
  done
  return 1
}

# cmake_build ARGUMENT...: runs cmake --build ARGUMENT... and shows progress on one line, or
# without a terminal on one line per 10 %. Compiler output is shown unchanged.
cmake_build() {
  NINJA_STATUS='@%p %e ' cmake --build "$@" | show_progress
}

show_progress() {
  local line clear='' shown=0 percent seconds
  [[ -t 1 ]] && clear=$'\r\e[K'
  while IFS= read -r line; do
    if [[ $line =~ ^@\ *([0-9]+)%\ ([0-9]+) ]]; then
      percent=${BASH_REMATCH[1]} seconds=${BASH_REMATCH[2]}
      if [[ $clear ]]; then
        printf '%s   %3d %% built, %d s' "$clear" "$percent" "$seconds"
      elif ((percent / 10 > shown)); then
        shown=$((percent / 10))
        printf '   %3d %% built, %d s\n' "$percent" "$seconds"
      fi
    elif [[ $line != "ninja: no work to do." ]]; then
      printf '%s%s\n' "$clear" "$line"
    fi
  done
  printf '%s' "$clear"
}

# Prints the seconds of CPU time of all finished child commands of this script (cutime and cstime
# in proc(5)).
processor_seconds() {
  local stat
  read -ra stat <"/proc/$$/stat"
  printf '%d\n' $(((stat[15] + stat[16]) / $(getconf CLK_TCK)))
}

# step NAME COMMAND...: runs COMMAND and prints its duration. If it fails, prints the name and how
# to run it alone.
step() {
  local name=$1 started=$SECONDS processor code=0
  processor=$(processor_seconds)
  shift
  printf '\n== %s\n' "$name"
  "$@" || code=$?
  if ((code)); then
    printf '\n%s: step "%s" failed (exit code %s); its output is above.' "$script" "$name" "$code" >&2
    # Functions of the script cannot be called from outside.
    [[ $1 == cmake_build ]] && set -- cmake --build "${@:2}"
    if ! declare -F "$1" >/dev/null; then
      printf ' Run it alone with:\n  cd %q &&' "$PWD" >&2
      printf ' %q' "$@" >&2
    fi
    printf '\n' >&2
    exit "$code"
  fi
  printf -- '-- %s: %d s, %d s of processor time\n' "$name" $((SECONDS - started)) $(($(processor_seconds) - processor))
}

# Prints the CUDA version that the PyTorch of a Python was built with ("13.0"), without importing
# it, which takes a second. Fails if there is no PyTorch or one without CUDA.
torch_cuda() {
  "$1" - 2>/dev/null <<'PY'
import importlib.util, pathlib, re, sys
spec = importlib.util.find_spec("torch")
version = spec and re.search(r"^cuda.*= '([\d.]+)'", (pathlib.Path(spec.origin).parent / "version.py").read_text(), re.M)
print(version.group(1)) if version else sys.exit(1)
PY
}

# Returns whether that PyTorch runs on the simulated device, which has the libraries of CUDA 13.
has_torch_for_simcuda() { [[ $(torch_cuda "$1") == 13.* ]]; }

# Prints the Python to use for tests: $GMT_TORCH_PYTHON, otherwise the one installed by setup.
torch_python() { printf '%s\n' "${GMT_TORCH_PYTHON:-$cache/torch/bin/python}"; }

has_gpu() { [[ -e /dev/nvidiactl || -e /dev/dxg ]]; }

# Returns whether the Node.js on PATH can build the page: Vite requires 20.19 or a later 20, or
# 22.12 or later. viewer/html/CMakeLists.txt has the same condition.
has_node() {
  local version
  version=$(node --version 2>/dev/null) && command -v npm >/dev/null && [[ $version =~ ^v([0-9]+)\.([0-9]+) ]] || return 1
  local major=${BASH_REMATCH[1]} minor=${BASH_REMATCH[2]}
  ((major == 20 && minor >= 19 || major == 22 && minor >= 12 || major > 22))
}

# Puts a suitable Node.js on PATH: the one of the machine, otherwise the one downloaded by setup.
use_node() { has_node || PATH=$cache/node/bin:$PATH; }

# Prints the path of a browser for tests. Chromium's headless shell comes first: opening a page in it
# takes half the processor time of opening it in Chromium, which also draws its own windows.
browser() {
  local name
  for name in ${GMT_CHROMIUM:+"$GMT_CHROMIUM"} chromium-headless-shell chromium google-chrome chrome; do
    command -v "$name" && return
  done
  return 1
}

# release_apt RELEASE: prints the file for APT_CONFIG that makes apt-get use another release of
# this system, from the same package sources, including source packages. Packages and lists of this
# machine are not changed.
release_apt() {
  local release=$1 state=$cache/release-$1 here file
  here=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  rm -rf "$state"
  mkdir -p "$state"/{lists/partial,archives/partial,sources}
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    [[ -e $file ]] || continue
    sed "/-backports/d; s/\\b$here\\b/$release/g; s/^Types: deb\$/Types: deb deb-src/; /^deb /{p;s/^deb /deb-src /}" "$file" \
      >"$state/sources/$(basename "$file" | sed 's/^sources.list$/main.list/')"
  done
  cat >"$state/apt.conf" <<END
Dir::State "$state"; Dir::State::Lists "$state/lists"; Dir::State::status "/dev/null"; Dir::Cache "$state";
Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "$state/sources"; APT::Sandbox::User "root";
END
  printf '%s\n' "$state/apt.conf"
}

# Prints the comment at the top of the running script.
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }
