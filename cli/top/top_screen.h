// cli/top/top_screen.h
//
// What `gpumemtrace top` shows, as lines of text: processes and their heaps, devices, then the
// stacks of the chosen process. The same lines are drawn on a terminal and printed by --once.
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
  std::string text;  // UTF-8, at most as wide as requested
  Style style = Style::kPlain;
};

struct TopSize {
  int columns = 80, rows = 24;
  bool utf8 = true;  // what the terminal can show
};

// Returns exactly `size.rows` lines, or all lines if rows is 0.
std::vector<TopLine> DrawTop(const TopModel& model, const TopChoice& choice, const TopSize& size);

// Returns the indices of a process's sites that pass the filter, in their order.
std::vector<int> SitesShown(const TopProcess& process, const std::string& filter);

// Draws one character per sample, the newest last, scaled from the minimum to the maximum.
std::string Sparkline(const std::deque<uint64_t>& samples, size_t columns, bool utf8);

}  // namespace gmt::cli

#endif  // GMT_CLI_TOP_TOP_SCREEN_H_
