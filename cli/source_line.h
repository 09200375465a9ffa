// cli/source_line.h
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

#ifndef GMT_CLI_SOURCE_LINE_H_
#define GMT_CLI_SOURCE_LINE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/frames.h"

namespace gmt::cli {

class SourceLines {
 public:
  static constexpr size_t kMaxColumns = 80;

  // 0: when the recording began is not known; then any file will do.
  explicit SourceLines(int64_t recording_start_unix_ns) : start_unix_ns_(recording_start_unix_ns) {}

  // Line `number` (from 1) of the file, without the spaces around it, cut to `columns`. "" where it is
  // not at hand.
  std::string Line(const std::string& file, uint32_t number, size_t columns = kMaxColumns);
  std::string Line(const analysis::FrameText& frame, size_t columns = kMaxColumns) {
    return Line(frame.file, frame.line, columns);
  }

  struct Numbered {
    uint32_t number = 0;
    std::string text;  // with its indentation, less what all of them have
  };
  // That line and up to `around` before and behind it; empty where it is not at hand.
  std::vector<Numbered> Around(const std::string& file, uint32_t number, uint32_t around,
                               size_t columns = kMaxColumns);

 private:
  const std::vector<std::string>& LinesOf(const std::string& file);

  const int64_t start_unix_ns_;
  std::map<std::string, std::vector<std::string>> files_;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_SOURCE_LINE_H_
