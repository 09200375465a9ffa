// answers/show/page.h
//
// ShowPage: an explanation as `show` prints it: a headline, labelled facts, parts with headings,
// and the commands to run next.
//
//   stack/7 is Net.forward (model.py:88) > at::linear: 3.20 GiB at most, in 400 pieces at 12.4 s
//
//   at peak    GPU 0 at 38.2 s held 76.9 GiB, of which 3.20 GiB (4 %) in 400 pieces pytorch
//   sizes      8.00 MiB each (8388608 B)
//
//   Stack
//     > Net.forward (model.py:88)
//
//   gpumemtrace report run.gmt --at step:3
//
// Lines are cut to the terminal's width, except commands, which users copy.
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
  // Adds nothing if `text` is empty.
  void Fact(const std::string& label, const std::string& text);
  void Part(const std::string& heading);
  void Line(const std::string& text);
  // Adds the command "gpumemtrace VERB FILE REST".
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

// Returns the frames of a stack from the innermost called function outwards, with the source lines
// that are available, and with the neighbouring lines of the program's own frame. Contains all
// Python frames and the native ones that are not noise, or every frame.
std::vector<std::string> FramesWithSource(const std::vector<analysis::FrameText>& frames,
                                          FramesShown shown, analysis::SourceLines& sources,
                                          size_t width);

// Draws an amount over time in `values.size()` columns, scaled to the maximum. Uses block
// characters in UTF-8 locales, otherwise ASCII characters.
std::string Sparkline(const std::vector<uint64_t>& values, bool utf8);
bool IsUtf8Locale();

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_SHOW_PAGE_H_
