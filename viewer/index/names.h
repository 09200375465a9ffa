// viewer/index/names.h
//
// What the page calls streams, threads and categories, and the key of a call site: the same in every
// answer, so that a name that one answer shows is a filter of the next.
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

// "0x7f00"; "unknown" where the recording does not say.
inline std::string StreamName(const analysis::Rows& rows, analysis::RowId row) {
  if ((rows.flags[row] & analysis::kRowHasStream) == 0) return std::string(kUnknownName);
  return absl::StrCat("0x", absl::Hex(rows.stream[row]));
}

// "11"; "unknown" where the recording does not say.
inline std::string ThreadName(const analysis::Rows& rows, analysis::RowId row) {
  if ((rows.flags[row] & analysis::kRowHasThread) == 0) return std::string(kUnknownName);
  return absl::StrCat(rows.thread[row]);
}

// Type and shape of the tensor that a block was taken for, "bfloat16 [8, 128, 768]"; "" if the recording
// does not say.
inline std::string TensorText(const format::Definitions& definitions, const analysis::Rows& rows,
                              analysis::RowId row) {
  if (rows.Dtype(row) == 0) return "";
  return absl::StrCat(std::string(definitions.string(rows.Dtype(row))), " ",
                      std::string(definitions.string(rows.Shape(row))));
}

// Of the frames where the program did it and in which part of a library (analysis/stacks/frames.h, OwnFrame and
// LibraryFrame; null for none): their functions and files without folders and lines, which move. 0: not
// known.
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

// "main > MLP.forward", of the same frames; "unknown" for none.
inline std::string SiteFunction(const analysis::FrameText* own,
                                const analysis::FrameText* library) {
  if (own == nullptr) return std::string(kUnknownName);
  return library == nullptr ? own->Name() : absl::StrCat(own->Name(), " > ", library->Name());
}

// "train.py:20 > gpt.py:88"; "" for none.
inline std::string SitePlace(const analysis::FrameText* own, const analysis::FrameText* library) {
  if (own == nullptr) return "";
  return library == nullptr ? own->Place() : absl::StrCat(own->Place(), " > ", library->Place());
}

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_INDEX_NAMES_H_
