// collector/inject/library_place.h
//
// LibraryPlace: a path from which a process can load a library. In the same root, this is the
// library's own path. In another root (a container), it is a copy that exists as long as this
// object, or the copy that the process has loaded already. A copy is locked (flock) while it is in
// use. An unlocked copy was left by an injector that was killed, and is removed by the next one
// that uses its folder.
//
// Paths in another root are resolved inside it (openat2, RESOLVE_IN_ROOT), so that a link in a
// container cannot lead to a file of ours.
//
// Thread safety: one thread.

#ifndef GMT_COLLECTOR_INJECT_LIBRARY_PLACE_H_
#define GMT_COLLECTOR_INJECT_LIBRARY_PLACE_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "collector/inject/target_info.h"

namespace gmt::inject {

// Returns whether the process sees the file `path` itself, or one with the same bytes, at that
// path.
bool SeesFile(const TargetInfo& target, const std::string& path);

class LibraryPlace {
 public:
  // Returns FAILED_PRECONDITION if no folder in the process's root accepts an executable copy; the
  // message names the folders that were tried.
  static absl::StatusOr<std::unique_ptr<LibraryPlace>> Find(const TargetInfo& target,
                                                            const std::string& library);
  ~LibraryPlace();
  LibraryPlace(const LibraryPlace&) = delete;
  LibraryPlace& operator=(const LibraryPlace&) = delete;

  // The path as the process sees it.
  const std::string& path() const { return path_; }

 private:
  explicit LibraryPlace(std::string path) : path_(std::move(path)) {}
  std::string path_, name_;
  int folder_ = -1;
  int copy_ = -1;  // open and locked while the copy is in use
};

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_LIBRARY_PLACE_H_
