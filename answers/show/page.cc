#include "answers/show/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "analysis/text.h"

namespace gmt::answers {
namespace {

using analysis::FrameText;

constexpr size_t kLabelWidth = 10, kMinWidth = 40, kMinSource = 24;
constexpr uint32_t kLinesAround = 1;

// Returns the word quoted for a shell if necessary.
std::string Quoted(const std::string& word) {
  const auto is_plain = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::StrContains("_./-+:=@%,", absl::string_view(&c, 1));
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) c == '\'' ? quoted += "'\\''" : quoted += c;
  return quoted + "'";
}

// Returns the source text to append to the line of a frame, or "" if there is no room for it.
std::string Source(const FrameText& frame, analysis::SourceLines& sources, size_t taken,
                   size_t width) {
  if (width < taken + kMinSource + 3) return "";
  const std::string text = sources.Line(frame, width - taken - 3);
  return text.empty() ? "" : "   " + text;
}

std::string CallerLine(const FrameText& frame, analysis::SourceLines& sources, size_t width) {
  const std::string line = "  < " + FrameLine(frame, width - 4);
  return line + Source(frame, sources, line.size(), width);
}

void AddAround(const FrameText& own, analysis::SourceLines& sources, size_t width,
               std::vector<std::string>& lines) {
  const auto around = sources.Around(own.file, own.line, kLinesAround, width - 12);
  for (const analysis::SourceLines::Numbered& line : around) {
    lines.push_back(
        fmt::format("  {:>6} {} {}", line.number, line.number == own.line ? '>' : ' ', line.text));
  }
}

std::vector<std::string> RawLines(const std::vector<FrameText>& frames,
                                  analysis::SourceLines& sources, size_t width) {
  std::vector<std::string> lines;
  for (const FrameText& frame : frames) lines.push_back(CallerLine(frame, sources, width));
  if (!lines.empty()) lines.front().replace(0, 4, "    ");
  return lines;
}

}  // namespace

ShowPage::ShowPage(const Terminal& terminal, std::string file)
    : terminal_(terminal),
      file_(std::move(file)),
      width_(std::max(static_cast<size_t>(std::max(terminal.width, 0)), kMinWidth)) {}

void ShowPage::Headline(const std::string& text) { headline_ = Shortened(text, width_); }

void ShowPage::Fact(const std::string& label, const std::string& text) {
  if (text.empty()) return;
  facts_.push_back(Shortened(fmt::format("{:<{}} {}", label, kLabelWidth, text), width_));
}

void ShowPage::Part(const std::string& heading) {
  if (!parts_.empty()) parts_.push_back("");
  parts_.push_back(Shortened(heading, width_));
}

void ShowPage::Line(const std::string& text) {
  const size_t end = text.find_last_not_of(' ');
  parts_.push_back(Shortened(end == std::string::npos ? "" : text.substr(0, end + 1), width_));
}

void ShowPage::Next(const std::string& verb, const std::string& rest) {
  std::string command = fmt::format("gpumemtrace {} {}", verb, Quoted(file_));
  if (!rest.empty()) command += " " + rest;
  commands_.push_back(std::move(command));
}

std::string ShowPage::Finish() const {
  std::string text = terminal_.Bold(headline_) + "\n";
  for (const std::vector<std::string>* part : {&facts_, &parts_, &commands_}) {
    if (part->empty()) continue;
    text += "\n";
    for (const std::string& line : *part) text += line + "\n";
  }
  return text;
}

std::vector<std::string> FramesWithSource(const std::vector<FrameText>& frames, FramesShown shown,
                                          analysis::SourceLines& sources, size_t width) {
  if (frames.empty()) return {"  no stack was recorded"};
  if (shown == FramesShown::kRaw) return RawLines(frames, sources, width);
  const auto own = static_cast<size_t>(analysis::OwnFrame(frames));
  const auto called = static_cast<size_t>(analysis::LeadingFrame(frames));
  std::vector<std::string> lines;
  for (size_t i = called; i < frames.size(); ++i) {
    if (i != called && frames[i].is_noise() && !frames[i].is_python()) continue;
    lines.push_back(i == own ? "  < " + FrameLine(frames[i], width - 4)
                             : CallerLine(frames[i], sources, width));
    if (i == called) lines.back().replace(0, 4, "    ");
    if (i == own) AddAround(frames[i], sources, width, lines);
  }
  return lines;
}

std::string Sparkline(const std::vector<uint64_t>& values, bool utf8) {
  static constexpr std::array<std::string_view, 9> kBlocks = {" ", "▁", "▂", "▃", "▄",
                                                              "▅", "▆", "▇", "█"};
  static constexpr std::array<std::string_view, 9> kLetters = {" ", ".", ":", "-", "=",
                                                               "+", "*", "#", "@"};
  const auto& glyphs = utf8 ? kBlocks : kLetters;
  const uint64_t most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  std::string line;
  for (const uint64_t value : values) {
    // Any nonzero value is visible.
    const double share = most == 0 ? 0 : static_cast<double>(value) / static_cast<double>(most);
    const auto level = static_cast<size_t>(share * 7.999 + (value > 0 ? 1 : 0));
    line += glyphs[std::min(level, glyphs.size() - 1)];
  }
  return line;
}

bool IsUtf8Locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string lower = absl::AsciiStrToLower(value);
    return absl::StrContains(lower, "utf-8") || absl::StrContains(lower, "utf8");
  }
  return false;
}

}  // namespace gmt::answers
