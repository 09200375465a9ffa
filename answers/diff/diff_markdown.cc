#include <fmt/format.h>

#include <algorithm>

#include "analysis/text.h"
#include "answers/diff/diff_text.h"

namespace gmt::answers {
namespace {

using analysis::Comparison;
using analysis::Diff;
using analysis::DiffRow;

constexpr size_t kDefaultRows = 5;
constexpr size_t kMarkdownRows = 200;  // a comment is limited to 65,536 characters
constexpr size_t kTitle = 120;

// Formats text as code in a table cell, so that nothing in it is markup and a bar does not end the
// cell. A name cannot close the code or contain a line break.
std::string Code(const std::string& text) {
  std::string code = "`";
  for (const char c : text) {
    if (c == '|') code += '\\';
    code += c == '`' ? '\'' : static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return code + "`";
}

std::string Table(const Diff& diff, size_t from, size_t to) {
  if (from >= std::min(to, diff.rows.size())) return "";
  std::string text = "| change | base | new | what and where |\n|---:|---:|---:|---|\n";
  for (size_t i = from; i < std::min(to, diff.rows.size()); ++i) {
    const DiffRow& row = diff.rows[i];
    text +=
        fmt::format("| {} | {} | {} | {} |\n", SignedBytes(row.delta_bytes()),
                    row.base_id.empty() ? "-" : Bytes(row.base_bytes),
                    row.new_id.empty() ? "-" : Bytes(row.new_bytes), Code(DiffTitle(row, kTitle)));
  }
  return text;
}

std::string Folded(const Comparison& comparison, const Diff& diff, const DiffSource& source,
                   size_t top) {
  std::string text;
  if (std::string rest = Table(diff, top, kMarkdownRows); !rest.empty()) text += rest + "\n";
  if (diff.rows.size() > std::max(top, kMarkdownRows)) {
    text += fmt::format("and {} more\n\n", Count(diff.rows.size() - std::max(top, kMarkdownRows)));
  }
  text += fmt::format("- {} of {} unchanged\n", Bytes(diff.unchanged_bytes),
                      Plural(diff.unchanged_stacks, "stack"));
  if (const std::string counts = DiffCounts(diff); !counts.empty()) text += "- " + counts + "\n";
  text +=
      fmt::format("- peaks of the whole recordings: {} -> {} ({})\n", Bytes(diff.base_peak_bytes),
                  Bytes(diff.new_peak_bytes), SignedBytes(diff.peak_delta_bytes()));
  for (const std::string& difference : comparison.differences) {
    text += "- " + Code(difference) + "\n";
  }
  for (const std::string& lack : source.base_lacks)
    text += "- not known of base: " + Code(lack) + "\n";
  for (const std::string& lack : source.new_lacks)
    text += "- not known of new: " + Code(lack) + "\n";
  return "<details><summary>All details</summary>\n\n" + text + "\n</details>\n";
}

}  // namespace

std::string DiffMarkdown(const Comparison& comparison, const DiffSource& source, size_t top) {
  if (comparison.devices.empty()) {
    return "**GPU memory: neither recording holds any.**\n";
  }
  const Diff& diff = Largest(comparison);
  if (top == 0) top = kDefaultRows;
  std::string text =
      fmt::format("**GPU memory, {}**\n\n{}: {} against {}\n\n", DiffVerdict(diff, source),
                  DiffMoment(diff), Code(source.new_file), Code(source.base_file));
  if (const std::string table = Table(diff, 0, top); !table.empty()) text += table + "\n";
  for (const Diff& other : comparison.devices) {
    if (&other != &diff) text += "- " + DiffVerdict(other, source) + "\n";
  }
  if (comparison.devices.size() > 1) text += "\n";
  return text + Folded(comparison, diff, source, top);
}

}  // namespace gmt::answers
