#include "cli/record/health.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "analysis/text.h"
#include "cli/install.h"
#include "collector/devices/nvml.h"
#include "session/session_file.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace gmt::cli {
namespace {

using State = Check::State;

std::string Errno() { return strerror(errno); }

Check System() {
  utsname u = {};
  uname(&u);
  return {
      "system", State::kWorks,
      fmt::format("{} {} {}, glibc {}", u.sysname, u.release, u.machine, gnu_get_libc_version())};
}

Check Library() {
  absl::StatusOr<std::string> path = PreloadLibrary();
  if (!path.ok()) return {"library", State::kFails, std::string(path.status().message())};
  void* handle = dlopen(path->c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return {"library", State::kFails, dlerror()};
  return {"library", State::kWorks, *path};
}

Check Collector() {
  absl::StatusOr<std::string> path = CollectorProgram();
  if (!path.ok()) return {"collector", State::kFails, std::string(path.status().message())};
  return {"collector", State::kWorks, *path};
}

Check SharedMemory() {
  session::CreatedSession session;
  const int error = session::CreateSession({}, "", &session);
  if (error != 0) {
    return {"shared memory", State::kFails,
            fmt::format("{}: a session needs 4 to 32 MiB in $GPUMEMTRACE_DIR, $XDG_RUNTIME_DIR or "
                        "/dev/shm",
                        strerror(error))};
  }
  const std::string path = session.path;
  const std::string size = Bytes(session.size);
  munmap(session.base, session.size);
  close(session.fd);
  if (path.empty()) {
    return {"shared memory", State::kWithout,
            fmt::format("{} in a memfd: no in-memory directory has room, so events that are not "
                        "written yet are lost if target and collector both die",
                        size)};
  }
  unlink(path.c_str());
  struct statvfs fs = {};
  const std::string directory = std::filesystem::path(path).parent_path().string();
  statvfs(directory.c_str(), &fs);
  return {"shared memory", State::kWorks,
          fmt::format("{} in {}, {} free", size, directory, Bytes(fs.f_bavail * fs.f_frsize))};
}

Check ForkProtection() {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool works = page != MAP_FAILED && madvise(page, 4096, MADV_WIPEONFORK) == 0;
  const std::string why = Errno();
  if (page != MAP_FAILED) munmap(page, 4096);
  if (works)
    return {"fork", State::kWorks, "forked children start with a clean state (MADV_WIPEONFORK)"};
  return {
      "fork", State::kWithout,
      fmt::format("no MADV_WIPEONFORK ({}): forked children are detected by pthread_atfork", why)};
}

Check ProcessDescriptor() {
  const long fd = syscall(SYS_pidfd_open, getpid(), 0);
  if (fd < 0) {
    return {"pidfd", State::kWithout,
            fmt::format("{}: process exit is detected by polling, up to a second late", Errno())};
  }
  close(static_cast<int>(fd));
  return {"pidfd", State::kWorks, "process exit is detected at once"};
}

Check NativeStacks() {
#if defined(__x86_64__)
  return {"native stacks", State::kWorks, "unwound by the library itself"};
#else
  void* handle = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr)
    return {"native stacks", State::kWithout, "libgcc_s.so.1 was not found: install libgcc-s1"};
  dlclose(handle);
  return {"native stacks", State::kWorks, "unwound by libgcc"};
#endif
}

// Runs the first python3 on PATH with the library preloaded. Returns its version, a tab, and the
// library's state there: "on", or why its frames cannot be read.
std::string TryPython(const std::string& library) {
  constexpr char kCommand[] =
      "LD_PRELOAD=\"$GPUMEMTRACE_DOCTOR\" exec python3 -c '"
      "import ctypes, platform\n"
      "status = ctypes.PyDLL(None).gpumemtrace_python_status\n"
      "status.restype = ctypes.c_char_p\n"
      "print(platform.python_version(), status().decode(), sep=\"\\t\")' 2>/dev/null";
  setenv("GPUMEMTRACE_DOCTOR", library.c_str(), 1);
  FILE* pipe = popen(kCommand, "re");
  unsetenv("GPUMEMTRACE_DOCTOR");
  if (pipe == nullptr) return "";
  char text[256] = {};
  const size_t size = fread(text, 1, sizeof(text) - 1, pipe);
  return pclose(pipe) == 0 ? std::string(absl::StripAsciiWhitespace({text, size})) : "";
}

Check PythonStacks() {
  const absl::StatusOr<std::string> library = PreloadLibrary();
  const std::string tried = library.ok() ? TryPython(*library) : "";
  const std::vector<std::string> parts = absl::StrSplit(tried, '\t');
  if (parts.size() != 2) {
    return {"python stacks", State::kWithout,
            "no working python3 on PATH to test with; CPython 3.8 to 3.14 is supported"};
  }
  if (parts[1] != "on") {
    return {"python stacks", State::kWithout,
            fmt::format("python3 on PATH is {}: {}", parts[0], parts[1])};
  }
  return {"python stacks", State::kWorks,
          fmt::format("tested with python3 on PATH, version {}", parts[0])};
}

// NVTX reads its tool from the environment, which only `gpumemtrace run` sets.
Check Nvtx() {
  const absl::StatusOr<std::string> library = PreloadLibrary();
  if (!library.ok()) return {"nvtx", State::kFails, std::string(library.status().message())};
  const char* path = getenv("NVTX_INJECTION64_PATH");
  if (path == nullptr || *path == '\0') {
    return {"nvtx", State::kWorks,
            fmt::format("gpumemtrace run sets this up; with LD_PRELOAD alone, set "
                        "NVTX_INJECTION64_PATH={}",
                        *library)};
  }
  std::error_code none;
  if (std::filesystem::equivalent(path, *library, none)) {
    return {"nvtx", State::kWorks, "NVTX_INJECTION64_PATH names this library"};
  }
  return {"nvtx", State::kWithout,
          fmt::format("NVTX_INJECTION64_PATH is {}: gpumemtrace run records alongside it; with "
                      "LD_PRELOAD alone, NVTX is recorded only with "
                      "NVTX_INJECTION64_PATH={} GPUMEMTRACE_NVTX_INJECTION={}",
                      path, *library, path)};
}

Check Driver() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) {
    return {kDriverCheck, State::kWithout, "no libcuda.so.1 on this machine"};
  }
  using Int = int (*)(unsigned);
  using Out = int (*)(int*);
  const auto init = reinterpret_cast<Int>(dlsym(driver, "cuInit"));
  const auto version = reinterpret_cast<Out>(dlsym(driver, "cuDriverGetVersion"));
  const auto count = reinterpret_cast<Out>(dlsym(driver, "cuDeviceGetCount"));
  int v = 0, devices = 0;
  if (init == nullptr || version == nullptr || count == nullptr) {
    return {kDriverCheck, State::kWithout, "libcuda.so.1 exists but is not a CUDA driver"};
  }
  if (const int error = init(0); error != 0) {
    return {kDriverCheck, State::kWithout, fmt::format("cuInit fails with CUDA error {}", error)};
  }
  version(&v);
  count(&devices);
  return {kDriverCheck, State::kWorks,
          fmt::format("CUDA {}.{}, {}", v / 1000, v % 1000 / 10,
                      Plural(static_cast<uint64_t>(devices), "GPU"))};
}

// If the program is linked to its own libcupti, as PyTorch's wheels are, that one is used.
Check Cupti() {
  const absl::StatusOr<std::string> path = PreloadLibrary();
  void* library = path.ok() ? dlopen(path->c_str(), RTLD_LAZY | RTLD_LOCAL) : nullptr;
  using Status = const char* (*)();
  const auto status = library == nullptr
                          ? nullptr
                          : reinterpret_cast<Status>(dlsym(library, "gpumemtrace_cupti_status"));
  if (status == nullptr) return {"cupti", State::kWithout, "the library does not report its state"};
  const std::string_view text = status();
  const std::string_view detail = text.substr(text.find(": ") + 2);
  if (text.starts_with("on: ")) return {"cupti", State::kWorks, std::string(detail)};
  return {"cupti", State::kWithout,
          fmt::format("{}: of programs that ship CUPTI, as PyTorch does, their own is used; for "
                      "others, set GPUMEMTRACE_CUPTI to its path",
                      detail)};
}

// Returns the path of the libcuda.so.1 that this process has loaded, or "" if none.
std::string DriverPath() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return "";
  link_map* map = nullptr;
  const bool found = dlinfo(driver, RTLD_DI_LINKMAP, &map) == 0;
  const std::string path = found ? map->l_name : "";
  dlclose(driver);
  return path;
}

Check DeviceMemory() {
  const char* setting = std::getenv("GPUMEMTRACE_NVML");
  collector::Nvml nvml(setting == nullptr ? "" : setting, DriverPath);
  absl::Status status = nvml.Open();
  const absl::StatusOr<uint32_t> count = status.ok() ? nvml.DeviceCount() : status;
  if (!count.ok()) {
    return {"nvml", State::kWithout,
            fmt::format("{}: memory held by other processes is unknown",
                        std::string(count.status().message()))};
  }
  return {"nvml", State::kWorks,
          fmt::format("{}, driver {}, {}", nvml.path(), nvml.Version(), Plural(*count, "GPU"))};
}

}  // namespace

const char* StateName(Check::State state) {
  switch (state) {
    case State::kWorks:
      return "works";
    case State::kWithout:
      return "without";
    case State::kFails:
      return "fails";
  }
  return "";
}

std::vector<Check> CheckHealth() {
  return {System(),         Library(),           Collector(),    SharedMemory(),
          ForkProtection(), ProcessDescriptor(), NativeStacks(), Driver(),
          DeviceMemory(),   PythonStacks(),      Cupti(),        Nvtx()};
}

}  // namespace gmt::cli
