// analysis/stacks/source_line.h
//
// SourceLines: the text of source lines, if the files are available: on the machine that recorded,
// or on one with the same tree at the same place.
//
//   SourceLines sources(trace.start_unix_ns);
//   sources.Line(frame, 80)       "scores = q @ k.transpose(-2, -1)", or "" if not available
//
//   L1  A file that was changed after the recording began is not used: its lines may have moved.
//   L2  A path of a recording is not trusted: only absolute paths of regular files up to 8 MiB are
//       read. Files that could block, or that reading could change (a fifo, a device), are never
//       opened. Returned text has no control characters.
//
// Thread safety: one thread at a time. Cost: a file is read once, when its first line is requested.

#ifndef GMT_ANALYSIS_STACKS_SOURCE_LINE_H_
#define GMT_ANALYSIS_STACKS_SOURCE_LINE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/stacks/frames.h"

namespace gmt::analysis {

class SourceLines {
 public:
  static constexpr size_t kMaxColumns = 80;

  // 0 if the start of the recording is unknown; then L1 is not applied.
  explicit SourceLines(int64_t recording_start_unix_ns) : start_unix_ns_(recording_start_unix_ns) {}

  // Returns line `number` (from 1) of the file without surrounding spaces, cut to `columns`; "" if
  // it is not available.
  std::string Line(const std::string& file, uint32_t number, size_t columns = kMaxColumns);
  std::string Line(const FrameText& frame, size_t columns = kMaxColumns) {
    return Line(frame.file, frame.line, columns);
  }

  // Why a file has no lines.
  enum State : uint8_t {
    kThere,
    kMissing,  // does not exist, or must not be read (L2)
    kNewer,    // L1
  };
  State StateOf(const std::string& file) { return FileAt(file).state; }

  struct Numbered {
    uint32_t number = 0;
    std::string text;  // without the indentation that all lines share
  };
  // Returns that line and up to `around` lines before and after it; empty if not available.
  std::vector<Numbered> Around(const std::string& file, uint32_t number, uint32_t around,
                               size_t columns = kMaxColumns);

 private:
  struct File {
    State state = kMissing;
    std::vector<std::string> lines;
  };
  const File& FileAt(const std::string& path);
  const std::vector<std::string>& LinesOf(const std::string& file) { return FileAt(file).lines; }

  const int64_t start_unix_ns_;
  std::map<std::string, File> files_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_STACKS_SOURCE_LINE_H_
