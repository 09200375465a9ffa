// cli/top/top_choice.h
//
// TopChoice: what the user of `gpumemtrace top` has chosen, and how keys change it.
//
// Thread safety: one thread at a time.

#ifndef GMT_CLI_TOP_TOP_CHOICE_H_
#define GMT_CLI_TOP_TOP_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proto/control.pb.h"

namespace gmt::cli {

// Keys that are not characters.
enum TopKey : int {
  kKeyEnter = '\n',
  kKeyEscape = 27,
  kKeyTab = '\t',
  kKeyBackspace = 127,
  kKeyUp = 0x110000,  // after the last Unicode character
  kKeyDown,
  kKeyPageUp,
  kKeyPageDown,
  kKeyHome,
  kKeyEnd,
};

// What a key requests besides redrawing.
enum class TopAction { kNone, kQuit, kSnapshot, kMark, kOrder };

struct TopChoice {
  enum class Typing { kNothing, kFilter, kMark };

  control::TopOrder order = control::BY_LIVE;
  std::string filter;  // shows rows whose stack contains it, ignoring case
  bool frozen = false, help = false, whole_stack = false;
  uint64_t pid = 0;  // process whose stacks are shown and that actions are for; 0: none yet
  size_t row = 0;    // index of the chosen stack among those that pass the filter
  Typing typing = Typing::kNothing;
  std::string typed;    // text typed so far
  std::string message;  // result of the last action

  // `next_pid` is the process after `pid`, and `rows` the number of stacks to choose from.
  TopAction OnKey(int key, uint64_t next_pid, size_t rows);

 private:
  TopAction OnTyped(int key);
};

struct TopHelpLine {
  std::string_view keys, what;
};
const std::vector<TopHelpLine>& TopHelp();

}  // namespace gmt::cli

#endif  // GMT_CLI_TOP_TOP_CHOICE_H_
