// viewer/index/index_cache.h
//
// The index of a recording as a file beside it, RECORDING.view, or where that folder cannot be
// written, below $XDG_CACHE_HOME/gpumemtrace/view. It is mapped, not read: a page comes up at once,
// whatever the size of the recording.
//
// Invariants
//   C1  A cache is used for the recording whose size, time of change and contents (of its ends) it
//       names, by the version that wrote it, and for no other; else it is as if there were none.
//   C2  It appears whole: written without a name, or under another one, then renamed. Who is killed
//       meanwhile leaves nothing, or something that goes when the next one is written.
//   C3  Whatever its bytes are, nothing is read outside of it.
//
// Thread safety: functions of any thread; several processes may save the same one, the last wins.

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
  std::string meta;                  // what SaveIndex was given
};

// Null index: there is none that fits.
CachedIndex LoadIndex(const std::string& recording);

// Keeps the index, and `meta`, text of the caller's own. REQUIRES: kReady.
absl::Status SaveIndex(const std::string& recording, const ViewIndex& index, std::string_view meta);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_INDEX_CACHE_H_
