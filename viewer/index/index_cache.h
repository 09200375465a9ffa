// viewer/index/index_cache.h
//
// Caches the index of a recording in a file beside it, .RECORDING.view, or below
// $XDG_CACHE_HOME/gpumemtrace/view if that directory is not writable. The file is mapped, not read,
// so that a page appears at once whatever the size of the recording.
//
// Invariants
//   C1  A cache is used only for the recording whose size, modification time and contents (of its
//       ends) it names, and only by the version that wrote it; otherwise it is ignored.
//   C2  It appears atomically: written without a name, or under another one, then renamed. A
//       process that is killed meanwhile leaves nothing, or a file that the next writer removes.
//   C3  Whatever its bytes are, nothing outside of it is read.
//
// Thread safety: any thread. If several processes save the same index, the last one wins.

#ifndef GMT_VIEWER_INDEX_INDEX_CACHE_H_
#define GMT_VIEWER_INDEX_INDEX_CACHE_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "viewer/index/view_index.h"

namespace gmt::viewer {

struct CachedIndex {
  std::unique_ptr<ViewIndex> index;  // of stage kReady
  std::string meta;                  // as passed to SaveIndex
};

// Returns a null index if there is none that matches.
CachedIndex LoadIndex(const std::string& recording);

// Saves the index and `meta`, arbitrary text of the caller. REQUIRES: kReady.
absl::Status SaveIndex(const std::string& recording, const ViewIndex& index, std::string_view meta);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_INDEX_CACHE_H_
