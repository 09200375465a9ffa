// viewer/index/names.h
//
// The names of streams, threads and categories, and the key of a call site. They are the same in
// every answer, so that a name shown in one answer can be used as a filter in the next query.
//
// Thread safety: pure functions.

#ifndef GMT_VIEWER_INDEX_NAMES_H_
#define GMT_VIEWER_INDEX_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "analysis/stacks/frames.h"
#include "analysis/trace/trace.h"
#include "format/definitions.h"

namespace gmt::viewer {

inline constexpr std::string_view kUnknownName = "unknown";

// Returns a name such as "0x7f00", or "unknown" if the stream was not recorded.
inline std::string StreamName(const analysis::Rows& rows, analysis::RowId row) {
  if ((rows.flags[row] & analysis::kRowHasStream) == 0) return std::string(kUnknownName);
  return absl::StrCat("0x", absl::Hex(rows.stream[row]));
}

// Returns a name such as "11", or "unknown" if the thread was not recorded.
inline std::string ThreadName(const analysis::Rows& rows, analysis::RowId row) {
  if ((rows.flags[row] & analysis::kRowHasThread) == 0) return std::string(kUnknownName);
  return absl::StrCat(rows.thread[row]);
}

// Returns type and shape of the tensor that a block was allocated for, such as "bfloat16 [8, 128,
// 768]", or "" if they were not recorded.
inline std::string TensorText(const format::Definitions& definitions, const analysis::Rows& rows,
                              analysis::RowId row) {
  if (rows.Dtype(row) == 0) return "";
  return absl::StrCat(std::string(definitions.string(rows.Dtype(row))), " ",
                      std::string(definitions.string(rows.Shape(row))));
}

// Returns a hash of the program's own frame and the library frame of a call site
// (analysis/stacks/frames.h, OwnFrame and LibraryFrame; null for none): of their functions and file
// names, without directories and lines, which change. 0: unknown.
inline uint32_t SiteKey(const analysis::FrameText* own, const analysis::FrameText* library) {
  if (own == nullptr) return 0;
  uint32_t hash = 2166136261u;  // FNV-1a: any stable hash will do
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    hash *= 16777619u;
  };
  for (const analysis::FrameText* frame : {own, library}) {
    if (frame == nullptr) continue;
    add(frame->Name());
    add(frame->FileName());
  }
  return hash == 0 ? 1 : hash;
}

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_NAMES_H_
