// analysis/stacks/source_line.h
//
// SourceLines: the text of lines of source files, where those are at hand: on the machine that recorded,
// or one with the same tree at the same place.
//
//   SourceLines sources(trace.start_unix_ns);
//   sources.Line(frame, 80)       "scores = q @ k.transpose(-2, -1)", or "" where it is not known
//
//   L1  A file that was changed after the recording began says nothing: its lines may have moved.
//   L2  A path of a recording is not trusted: only absolute paths of regular files up to 8 MiB are read.
//       Nothing is opened that could block or that reading could change (a fifo, a device), and what is
//       printed has no control characters.
//
// Thread safety: one thread at a time. Cost: a file is read once, when its first line is asked for.

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

  // 0: when the recording began is not known; then any file will do.
  explicit SourceLines(int64_t recording_start_unix_ns) : start_unix_ns_(recording_start_unix_ns) {}

  // Line `number` (from 1) of the file, without the spaces around it, cut to `columns`. "" where it is
  // not at hand.
  std::string Line(const std::string& file, uint32_t number, size_t columns = kMaxColumns);
  std::string Line(const FrameText& frame, size_t columns = kMaxColumns) {
    return Line(frame.file, frame.line, columns);
  }

  // Why a file has no lines.
  enum State : uint8_t {
    kThere,
    kMissing,  // not there, or not to be read (L2)
    kNewer,    // L1
  };
  State StateOf(const std::string& file) { return FileAt(file).state; }

  struct Numbered {
    uint32_t number = 0;
    std::string text;  // with its indentation, less what all of them have
  };
  // That line and up to `around` before and behind it; empty where it is not at hand.
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
