// cli/query/line_editor.h
//
// LineEditor: reads lines from the terminal, with keys to edit them, a history and completion. Only
// its .cc file includes libedit.
//
// Thread safety: one object, used by one thread.

#ifndef GMT_CLI_QUERY_LINE_EDITOR_H_
#define GMT_CLI_QUERY_LINE_EDITOR_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace gmt::cli {

class LineEditor {
 public:
  struct Completion {
    size_t typed = 0;  // bytes before the cursor that all words begin with, in some case
    std::vector<std::string> words;
  };
  // Receives the line up to the cursor.
  using Completer = std::function<Completion(std::string_view)>;

  // `history`: a file that only the user may read, created with its folder at the first entry;
  // without one, entries are kept until the program ends. Fails if the terminal cannot be used.
  static absl::StatusOr<std::unique_ptr<LineEditor>> Open(const std::string& history,
                                                          Completer completer);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  struct Line {
    enum End { kEntered, kCancelled, kEndOfInput } end = kEntered;  // Enter, Ctrl-C, Ctrl-D
    std::string text;
  };
  Line Read(const std::string& prompt);

  // Adds an entry to the history and its file. Returns the reason if that cannot be written.
  absl::Status Remember(const std::string& entry);

 private:
  struct Terminal;

  LineEditor();
  absl::Status AppendToFile();

  std::string history_;
  std::unique_ptr<Terminal> terminal_;
};

}  // namespace gmt::cli

#endif  // GMT_CLI_QUERY_LINE_EDITOR_H_
