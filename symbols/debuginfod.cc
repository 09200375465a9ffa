#include "symbols/debuginfod.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/status/status.h"

namespace gmt::symbols {

// The client's C interface (debuginfod.h, elfutils 0.178 and later). It is stable, so it can be
// used without its header.
struct Debuginfod::Library {
  void* handle = nullptr;
  void* client = nullptr;
  int (*find_debuginfo)(void* client, const unsigned char* build_id, int bytes,
                        char** path) = nullptr;
  void (*end)(void* client) = nullptr;

  ~Library() {
    if (client != nullptr) end(client);
    if (handle != nullptr) dlclose(handle);
  }

  bool Open() {
    handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return false;
    const auto begin = reinterpret_cast<void* (*)()>(dlsym(handle, "debuginfod_begin"));
    find_debuginfo =
        reinterpret_cast<decltype(find_debuginfo)>(dlsym(handle, "debuginfod_find_debuginfo"));
    end = reinterpret_cast<decltype(end)>(dlsym(handle, "debuginfod_end"));
    if (begin == nullptr || find_debuginfo == nullptr || end == nullptr) return false;
    client = begin();
    return client != nullptr;
  }
};

absl::StatusOr<std::unique_ptr<Debuginfod>> Debuginfod::Open() {
  const char* servers = getenv("DEBUGINFOD_URLS");
  if (servers == nullptr || *servers == '\0') {
    return absl::FailedPreconditionError(
        "no server is configured; set DEBUGINFOD_URLS, for example to "
        "https://debuginfod.elfutils.org");
  }
  auto library = std::make_unique<Library>();
  if (!library->Open()) {
    return absl::FailedPreconditionError(
        "libdebuginfod.so.1 is not installed; on Debian and Ubuntu it is in the package "
        "libdebuginfod1");
  }
  return std::unique_ptr<Debuginfod>(new Debuginfod(std::move(library), servers));
}

Debuginfod::Debuginfod(std::unique_ptr<Library> library, std::string servers)
    : library_(std::move(library)), servers_(std::move(servers)) {}

Debuginfod::~Debuginfod() = default;

std::string Debuginfod::Find(const std::string& build_id) {
  if (build_id.empty()) return "";
  char* path = nullptr;
  const int fd = library_->find_debuginfo(library_->client,
                                          reinterpret_cast<const unsigned char*>(build_id.data()),
                                          static_cast<int>(build_id.size()), &path);
  if (fd < 0) return "";
  close(fd);
  std::string found = path == nullptr ? "" : path;
  free(path);
  return found;
}

}  // namespace gmt::symbols
