// collector/inject/library_place.h
//
// LibraryPlace: where a process can load a library from. In the same root that is the library's own
// path; in another (a container) it is a copy, which is there as long as this object is, or the one
// that it has loaded already. A copy is locked (flock) meanwhile: one that is not is left over from who
// was killed, and goes when the next comes to its folder.
//
// Paths below another root are resolved inside of it (openat2, RESOLVE_IN_ROOT), so that a link in a
// container cannot lead us to a file of ours.
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

// Whether the process sees the very file `path`, or one with the same bytes, under that name.
bool SeesFile(const TargetInfo& target, const std::string& path);

class LibraryPlace {
 public:
  // FAILED_PRECONDITION where no folder of its root takes a copy that may be executed; the message
  // names those that were tried.
  static absl::StatusOr<std::unique_ptr<LibraryPlace>> Find(const TargetInfo& target,
                                                            const std::string& library);
  ~LibraryPlace();
  LibraryPlace(const LibraryPlace&) = delete;
  LibraryPlace& operator=(const LibraryPlace&) = delete;

  // As the process sees it.
  const std::string& path() const { return path_; }
  bool is_copy() const { return folder_ >= 0; }

 private:
  explicit LibraryPlace(std::string path) : path_(std::move(path)) {}
  std::string path_, name_;
  int folder_ = -1;
  int copy_ = -1;  // open and locked as long as the copy is wanted
};

}  // namespace gmt::inject

#endif  // GMT_COLLECTOR_INJECT_LIBRARY_PLACE_H_
