// cli/top/top_screen.h
//
// What `gpumemtrace top` shows, as lines of text: processes and their heaps, devices, then the stacks
// of the chosen process. The same lines are drawn on a terminal and printed by --once.
//
// Thread safety: pure functions.

#ifndef GMT_CLI_TOP_TOP_SCREEN_H_
#define GMT_CLI_TOP_TOP_SCREEN_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "cli/top/top_choice.h"
#include "cli/top/top_model.h"

namespace gmt::cli {

struct TopLine {
  enum class Style { kPlain, kBold, kDim, kTitle, kChosen, kWarning };
  std::string text;  // UTF-8, at most as wide as was asked for
  Style style = Style::kPlain;
};

struct TopSize {
  int columns = 80, rows = 24;
  bool utf8 = true;  // what the terminal can show
};

// Exactly `size.rows` lines, or, where rows is 0, as many as there is something to say.
std::vector<TopLine> DrawTop(const TopModel& model, const TopChoice& choice, const TopSize& size);

// Indices of the sites of a process that pass the filter, in their order.
std::vector<int> SitesShown(const TopProcess& process, const std::string& filter);

// One character a sample, the newest last: from the least to the most of them.
std::string Sparkline(const std::deque<uint64_t>& samples, size_t columns, bool utf8);

}  // namespace gmt::cli

#endif  // GMT_CLI_TOP_TOP_SCREEN_H_
