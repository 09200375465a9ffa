// cli/top/top_choice.h
//
// TopChoice: what the user of `gpumemtrace top` has chosen, and what a key changes about it.
//
// Thread safety: one thread at a time.

#ifndef GMT_CLI_TOP_TOP_CHOICE_H_
#define GMT_CLI_TOP_TOP_CHOICE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "proto/control.pb.h"

namespace gmt::cli {

// Keys that are no characters.
enum TopKey : int {
  kKeyEnter = '\n',
  kKeyEscape = 27,
  kKeyTab = '\t',
  kKeyBackspace = 127,
  kKeyUp = 0x110000,  // behind the last character
  kKeyDown,
  kKeyPageUp,
  kKeyPageDown,
  kKeyHome,
  kKeyEnd,
};

// What is to be done that is more than drawing anew.
enum class TopAction { kNone, kQuit, kSnapshot, kMark, kOrder };

struct TopChoice {
  enum class Typing { kNothing, kFilter, kMark };

  control::TopOrder order = control::BY_LIVE;
  std::string filter;  // rows whose stack has it, in whatever case
  bool frozen = false, help = false, whole_stack = false;
  size_t process = 0;  // index, of whose stacks are shown
  size_t row = 0;      // the chosen stack, of those that pass the filter
  Typing typing = Typing::kNothing;
  std::string typed;    // so far
  std::string message;  // what the last action came to

  // `processes`, `rows`: how many there are to choose from.
  TopAction OnKey(int key, size_t processes, size_t rows);

 private:
  TopAction OnTyped(int key);
};

struct TopHelpLine {
  std::string_view keys, what;
};
const std::vector<TopHelpLine>& TopHelp();

}  // namespace gmt::cli

#endif  // GMT_CLI_TOP_TOP_CHOICE_H_
