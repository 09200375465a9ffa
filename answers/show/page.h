// answers/show/page.h
//
// ShowPage: an explanation as `show` prints it: what it is, facts with a label each, a part with a
// heading, and what to run next.
//
//   stack/7 held at most 3.20 GiB in 400 pieces, at 12.4 s: Net.forward (model.py:88) > at::linear
//
//   at peak    GPU 0 held 76.9 GiB at 38.2 s; 3.20 GiB (4 %) in 400 of it
//   sizes      8.00 MiB each
//
//   Stack
//     > Net.forward (model.py:88)
//
//   gpumemtrace report run.gmt --at step:3
//
// Lines are cut to the terminal's width; commands are not, because one copies them.
//
// Thread safety: one thread.

#ifndef GMT_ANSWERS_SHOW_PAGE_H_
#define GMT_ANSWERS_SHOW_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/stacks/frames.h"
#include "analysis/stacks/source_line.h"
#include "answers/stacks/stack_text.h"
#include "answers/terminal.h"

namespace gmt::answers {

class ShowPage {
 public:
  ShowPage(const Terminal& terminal, std::string file);

  void Headline(const std::string& text);
  // Nothing where `text` is empty.
  void Fact(const std::string& label, const std::string& text);
  void Part(const std::string& heading);
  void Line(const std::string& text);
  // "gpumemtrace VERB FILE REST".
  void Next(const std::string& verb, const std::string& rest);

  size_t width() const { return width_; }
  const std::vector<std::string>& commands() const { return commands_; }
  std::string Finish() const;

 private:
  const Terminal& terminal_;
  const std::string file_;
  const size_t width_;
  std::string headline_;
  std::vector<std::string> facts_, parts_, commands_;
};

// The frames of a stack from what was called outwards, with the text of the lines that are at hand and
// the neighbours of the program's own: Python's all, native ones that are no noise; or every frame.
std::vector<std::string> FramesWithSource(const std::vector<analysis::FrameText>& frames,
                                          FramesShown shown, analysis::SourceLines& sources, size_t width);

// An amount over time in `values.size()` columns, the highest of them full; blocks where the
// terminal's locale is UTF-8, else letters of a typewriter.
std::string Sparkline(const std::vector<uint64_t>& values, bool utf8);
bool IsUtf8Locale();

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_SHOW_PAGE_H_
