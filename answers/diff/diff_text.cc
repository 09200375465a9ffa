#include "answers/diff/diff_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/stacks/source_line.h"
#include "analysis/text.h"
#include "answers/stacks/stack_text.h"

namespace gmt::answers {
namespace {

using analysis::Comparison;
using analysis::Diff;
using analysis::DiffRow;

constexpr size_t kTitleColumn = 45;  // column at which the text of a row begins
constexpr size_t kMinTitle = 30;
constexpr size_t kMaxRows = 12, kMinRows = 3;
constexpr size_t kRowsWithSource = 3;
constexpr size_t kDevicesShown = 3, kDifferencesShown = 4, kDiffLacksShown = 1;
constexpr ptrdiff_t kScreen = 25;

std::string Place(const Diff& diff) {
  if (diff.device == analysis::kHostDevice) return "host";
  if (diff.device == diff.base_device) return fmt::format("GPU {}", diff.device);
  return fmt::format("GPU {} and {}", diff.base_device, diff.device);
}

std::string Growth(const Diff& diff) {
  const auto delta = static_cast<double>(diff.delta_bytes());
  if (diff.base_bytes == 0) return "all new";
  return fmt::format("{:+.1f} %", 100 * delta / static_cast<double>(diff.base_bytes));
}

std::string LimitText(const Limit& limit) {
  return limit.bytes ? Bytes(*limit.bytes) : fmt::format("{:g} %", limit.percent);
}

bool IsAbove(uint64_t base, uint64_t changed, const Limit& limit) {
  if (changed <= base) return false;
  const uint64_t growth = changed - base;
  if (limit.bytes) return growth > *limit.bytes;
  return static_cast<double>(growth) > static_cast<double>(base) * limit.percent / 100;
}

// ---- Table --------------------------------------------------------------------------------------

std::string Line(const std::string& delta, const std::string& base, const std::string& changed,
                 const std::string& count, const std::string& title) {
  return fmt::format("{:>10} {:>9} {:>9} {:>12}  {}\n", delta, base, changed, count, title);
}

std::string CountText(const DiffRow& row) {
  if (row.base_count == row.new_count) return Count(row.new_count);
  return fmt::format("{}>{}", Count(row.base_count), Count(row.new_count));
}

std::string Id(const DiffRow& row) {
  return row.new_id.empty() ? "base " + row.base_id : row.new_id;
}

std::string RowLine(const DiffRow& row, size_t width) {
  const std::string id = "   " + Id(row);
  const size_t room =
      width > kTitleColumn + id.size() + kMinTitle ? width - kTitleColumn - id.size() : kMinTitle;
  return Line(SignedBytes(row.delta_bytes()), row.base_id.empty() ? "-" : Bytes(row.base_bytes),
              row.new_id.empty() ? "-" : Bytes(row.new_bytes), CountText(row),
              Shortened(DiffTitle(row, room), room) + id);
}

std::string SourceOfRow(const DiffRow& row, analysis::SourceLines& sources, size_t width) {
  const std::vector<analysis::FrameText>& frames =
      row.forward_frames.empty() ? row.frames : row.forward_frames;
  const int own = analysis::OwnFrame(frames);
  if (own < 0 || row.new_id.empty()) return "";
  const size_t room = width > kTitleColumn + kMinTitle ? width - kTitleColumn - 2 : kMinTitle;
  const std::string line = sources.Line(frames[static_cast<size_t>(own)], room);
  return line.empty() ? "" : std::string(kTitleColumn + 2, ' ') + line + "\n";
}

std::string Table(const Diff& diff, size_t top, analysis::SourceLines& sources, size_t width) {
  std::string text = Line("change", "base", "new", "count", "what and where");
  const size_t shown = diff.rows.size() > top ? top - 1 : diff.rows.size();
  uint64_t base = 0, changed = 0;
  for (size_t i = 0; i < diff.rows.size(); ++i) {
    const DiffRow& row = diff.rows[i];
    if (i < shown) {
      text += RowLine(row, width);
      if (i < kRowsWithSource) text += SourceOfRow(row, sources, width);
    } else {
      base += row.base_bytes;
      changed += row.new_bytes;
    }
  }
  if (shown < diff.rows.size()) {
    text += Line(SignedBytes(static_cast<int64_t>(changed - base)), Bytes(base), Bytes(changed), "",
                 Plural(diff.rows.size() - shown, "other stack"));
  }
  if (diff.unchanged_stacks > 0) {
    text += Line("0 B", Bytes(diff.unchanged_bytes), Bytes(diff.unchanged_bytes), "",
                 Plural(diff.unchanged_stacks, "unchanged stack"));
  }
  return text + Line(SignedBytes(diff.delta_bytes()), Bytes(diff.base_bytes), Bytes(diff.new_bytes),
                     "", "total");
}

// ---- Around the table ---------------------------------------------------------------------------

std::string Peaks(const Diff& diff) {
  if (diff.peak_delta_bytes() == diff.delta_bytes()) return "";
  return fmt::format("Peaks of the whole recordings: {} -> {} ({}).\n", Bytes(diff.base_peak_bytes),
                     Bytes(diff.new_peak_bytes), SignedBytes(diff.peak_delta_bytes()));
}

std::string Differences(const Comparison& comparison, size_t width) {
  std::string text;
  const std::vector<std::string>& all = comparison.differences;
  const size_t shown = std::min(kDifferencesShown, all.size());
  for (size_t i = 0; i < shown; ++i) {
    text += Shortened(all[i], width) + "\n";
  }
  if (shown < all.size()) {
    text +=
        fmt::format("and {}; --json shows all\n", Plural(all.size() - shown, "more difference"));
  }
  return text;
}

std::string OtherDevices(const Comparison& comparison, const Diff& largest,
                         const DiffSource& source) {
  std::string text;
  size_t others = 0;
  for (const Diff& diff : comparison.devices) {
    if (&diff == &largest) continue;
    if (++others <= kDevicesShown) text += DiffVerdict(diff, source) + "\n";
  }
  if (others <= kDevicesShown) return text;
  return text + Plural(others - kDevicesShown, "other device") + ": --device N shows each\n";
}

std::string Lacks(const DiffSource& source, size_t width) {
  std::string text;
  const auto add = [&](const std::string& file, const std::vector<std::string>& lacks) {
    for (size_t i = 0; i < std::min(kDiffLacksShown, lacks.size()); ++i) {
      text += Shortened(fmt::format("Not known, {}: {}", file, lacks[i]), width) + "\n";
    }
  };
  add(source.base_file, source.base_lacks);
  add(source.new_file, source.new_lacks);
  return text;
}

std::string Next(const Diff& diff, const DiffSource& source) {
  if (diff.rows.empty()) return "";
  const DiffRow& row = diff.rows.front();
  const bool is_gone = row.new_id.empty();
  return fmt::format("Next: gpumemtrace show {} {}\n", is_gone ? source.base_file : source.new_file,
                     is_gone ? row.base_id : row.new_id);
}

}  // namespace

bool IsAbove(const Diff& diff, const Limit& limit) {
  if (diff.device == analysis::kHostDevice) return false;
  return IsAbove(diff.base_bytes, diff.new_bytes, limit) ||
         IsAbove(diff.base_peak_bytes, diff.new_peak_bytes, limit);
}

bool HasFailed(const Comparison& comparison, const DiffSource& source) {
  return source.limit && std::any_of(comparison.devices.begin(), comparison.devices.end(),
                                     [&](const Diff& d) { return IsAbove(d, *source.limit); });
}

const Diff& Largest(const Comparison& comparison) {
  return *std::max_element(
      comparison.devices.begin(), comparison.devices.end(), [](const Diff& a, const Diff& b) {
        return std::max(a.base_bytes, a.new_bytes) < std::max(b.base_bytes, b.new_bytes);
      });
}

std::string DiffVerdict(const Diff& diff, const DiffSource& source) {
  std::string text =
      diff.delta_bytes() == 0
          ? fmt::format("{}: no change, {} allocated", Place(diff), Bytes(diff.new_bytes))
          : fmt::format("{}: {} ({}), {} -> {} allocated", Place(diff),
                        SignedBytes(diff.delta_bytes()), Growth(diff), Bytes(diff.base_bytes),
                        Bytes(diff.new_bytes));
  if (!source.limit || diff.device == analysis::kHostDevice) return text;
  const std::string limit = LimitText(*source.limit);
  if (IsAbove(diff.base_bytes, diff.new_bytes, *source.limit)) {
    return text + "; FAIL, the limit is " + limit;
  }
  if (IsAbove(diff, *source.limit)) return text + "; FAIL, the peak grew by more than " + limit;
  return text + "; passes the limit of " + limit;
}

std::string DiffMoment(const Diff& diff) {
  const std::string at =
      diff.aligned_on.starts_with("the ") ? diff.aligned_on : diff.aligned_on + " of both";
  std::string text =
      fmt::format("at {}, {} and {}", at, Duration(diff.base_at.t_ns), Duration(diff.new_at.t_ns));
  if (diff.base_reserved_bytes == 0 && diff.new_reserved_bytes == 0) return text;
  return text + fmt::format("; reserved {} -> {} (depends on earlier calls)",
                            Bytes(diff.base_reserved_bytes), Bytes(diff.new_reserved_bytes));
}

std::string DiffTitle(const DiffRow& row, size_t width) {
  std::string text;
  if (row.category != analysis::Category::kUnknown) text = analysis::TextOf(row.category) + ": ";
  if (!row.forward_frames.empty()) text += "backward of ";
  const size_t room = width > text.size() + kMinTitle ? width - text.size() : kMinTitle;
  return text + StackLine(row.forward_frames.empty() ? row.frames : row.forward_frames, room);
}

std::string DiffCounts(const Diff& diff) {
  std::string text;
  const auto add = [&](uint64_t count, const std::string& what) {
    if (count > 0) text += (text.empty() ? "" : ", ") + what;
  };
  add(diff.new_stacks, Plural(diff.new_stacks, "new stack"));
  add(diff.gone_stacks, fmt::format("{} gone", Count(diff.gone_stacks)));
  add(diff.moved_stacks, fmt::format("{} with moved lines", Count(diff.moved_stacks)));
  return text;
}

std::string DiffText(const Comparison& comparison, const DiffSource& source, size_t top,
                     const Terminal& terminal) {
  if (comparison.devices.empty())
    return "Neither recording holds any memory: nothing to compare.\n";
  const Diff& diff = Largest(comparison);
  const size_t width = static_cast<size_t>(std::max(terminal.width, 60));
  const std::string verdict = DiffVerdict(diff, source);
  const bool failed = source.limit && IsAbove(diff, *source.limit);
  const std::string head =
      (failed ? terminal.Red(verdict) : terminal.Bold(verdict)) + "\n" + DiffMoment(diff) + "\n\n";
  const std::string counts = DiffCounts(diff);
  const std::string tail = "\n" + (counts.empty() ? "" : counts + "\n") + Peaks(diff) +
                           OtherDevices(comparison, diff, source) + Differences(comparison, width) +
                           Lacks(source, width) + Next(diff, source);
  analysis::SourceLines sources(source.new_start_unix_ns);
  if (top > 0) return head + Table(diff, top, sources, width) + tail;
  std::string text;
  for (top = kMaxRows; top >= kMinRows; --top) {
    text = head + Table(diff, top, sources, width) + tail;
    if (std::count(text.begin(), text.end(), '\n') <= kScreen) break;
  }
  return text;
}

}  // namespace gmt::answers
