#include "answers/ledger/ledger_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analysis/text.h"
#include "analysis/trace/recorded_time.h"

namespace gmt::answers {
namespace {

using analysis::Ledger;
using analysis::LedgerGroup;
using analysis::LedgerRow;

constexpr size_t kLedgerLacksShown = 2;
constexpr size_t kDevicesShown = 3;
// The number of rows outside the allocator if the user gives none: as many as fit the screen.
constexpr size_t kMaxRows = 8, kMinRows = 2;
constexpr ptrdiff_t kScreen = 25;
constexpr size_t kTextColumn = 60;  // column at which the detail of a row begins
constexpr uint64_t kNearNs = 1'000'000;

uint64_t Magnitude(int64_t bytes) {
  return bytes < 0 ? 0 - static_cast<uint64_t>(bytes) : static_cast<uint64_t>(bytes);
}

// ---- First line ---------------------------------------------------------------------------------

struct Part {
  uint64_t bytes;
  const char* what;
};

std::vector<Part> Parts(const Ledger& ledger) {
  uint64_t live = 0, free = 0;
  for (const LedgerRow& row : ledger.rows) {
    if (row.group != LedgerGroup::kReserved) continue;
    (row.is_live ? live : free) += row.bytes;
  }
  std::vector<Part> parts = {
      {live, "live"},
      {free, "unused"},
      {ledger.bytes_of(LedgerGroup::kOutsideFramework), live + free > 0 ? "outside" : "its own"},
      {ledger.bytes_of(LedgerGroup::kNotApart), "contexts and others"},
      {ledger.bytes_of(LedgerGroup::kOtherProcess), "others"}};
  std::erase_if(parts, [](const Part& part) { return part.bytes == 0; });
  return parts;
}

std::string Verdict(const Ledger& ledger, const std::vector<Part>& parts) {
  std::string text =
      ledger.source.empty()
          ? fmt::format("GPU {} uses at least {}", ledger.device, Bytes(ledger.driver_used_bytes))
          : fmt::format("GPU {} uses {}", ledger.device, Bytes(ledger.driver_used_bytes));
  for (size_t i = 0; i < parts.size(); ++i) {
    text += fmt::format("{} {} {}", i == 0 ? ":" : ",", Bytes(parts[i].bytes), parts[i].what);
  }
  if (ledger.source.empty()) return text + "; the driver was not queried";
  const int64_t unexplained = ledger.unexplained_bytes;
  if (unexplained == 0) return text + "; all explained";
  return text + fmt::format("; {}{} unexplained", unexplained < 0 ? "-" : "",
                            Bytes(Magnitude(unexplained)));
}

// Leaves out the smallest parts if the line would be too long.
std::string Verdict(const Ledger& ledger, size_t width) {
  std::vector<Part> parts = Parts(ledger);
  std::string text = Verdict(ledger, parts);
  while (text.size() > width && parts.size() > 1) {
    parts.erase(std::min_element(parts.begin() + 1, parts.end(),
                                 [](const Part& a, const Part& b) { return a.bytes < b.bytes; }));
    text = Verdict(ledger, parts);
  }
  return text;
}

// Returns "at the peak, 4.20 s"; at time 0, when the recording began, without the time.
std::string Moment(const Ledger& ledger, const LedgerSource& source) {
  const std::string time = Duration(ledger.at.t_ns);
  if (source.is_live && ledger.at.name == "end")
    return fmt::format("now, {} after its start", time);
  const std::string at = ledger.at.name == "peak" ? "at the peak" : "at " + ledger.at.name;
  return ledger.at.t_ns == 0 ? at : fmt::format("{}, {}", at, time);
}

// Returns the source of the driver's figure as it is written in a sentence.
std::string_view SourceName(const Ledger& ledger) {
  return ledger.source == "nvml" ? "NVML" : std::string_view(ledger.source);
}

// Times in a file may have any value.
std::string DurationText(uint64_t ns) {
  return Duration(static_cast<int64_t>(std::min<uint64_t>(ns, INT64_MAX)));
}

std::string Reading(const Ledger& ledger) {
  if (ledger.source.empty()) return "";
  const uint64_t before = analysis::Between(ledger.reading_t_ns, ledger.at.t_ns);
  const uint64_t later = analysis::Between(ledger.at.t_ns, ledger.reading_t_ns);
  std::string text =
      fmt::format("; {} reported {}", SourceName(ledger), Bytes(ledger.reading_used_bytes));
  if (before >= kNearNs) text += fmt::format(" {} earlier", DurationText(before));
  if (later >= kNearNs) text += fmt::format(" {} later", DurationText(later));
  if (ledger.recorded_since == 0) return text;
  return text + fmt::format(", recorded {} then {}", later > 0 ? "until" : "since",
                            SignedBytes(ledger.recorded_since));
}

// ---- Table --------------------------------------------------------------------------------------

std::string Line(const std::string& bytes, const std::string& share, const std::string& name,
                 const std::string& known_by, const std::string& detail) {
  std::string line = fmt::format("{:>10} {:>6}  {:<20} {:<18}", bytes, share, name, known_by);
  if (!detail.empty()) line += " " + detail;
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string Share(uint64_t bytes, const Ledger& ledger) {
  return Percent(static_cast<double>(bytes), static_cast<double>(ledger.driver_used_bytes));
}

std::string Detail(const LedgerRow& row) {
  std::string text = row.detail;
  if (row.private_bytes > 0) text = "free in private pools of " + Bytes(row.private_bytes);
  if (row.count > 1 || (row.count == 1 && row.is_live)) {
    text = fmt::format("{}{}{}", Plural(row.count, row.is_live ? "block" : "allocation"),
                       text.empty()  ? ""
                       : row.is_live ? " "
                                     : ": ",
                       text);
  }
  return text;
}

std::string RowLine(const LedgerRow& row, const Ledger& ledger, size_t width) {
  std::string detail = Detail(row);
  const std::string id = row.stack == 0 ? "" : fmt::format("  stack/{}", row.stack);
  const size_t room = width > kTextColumn + id.size() + 10 ? width - kTextColumn - id.size() : 10;
  return Line(Bytes(row.bytes), Share(row.bytes, ledger), row.name, row.known_by,
              Shortened(detail, room) + id);
}

std::vector<const LedgerRow*> RowsOf(const Ledger& ledger, LedgerGroup group) {
  std::vector<const LedgerRow*> rows;
  for (const LedgerRow& row : ledger.rows) {
    if (row.group == group) rows.push_back(&row);
  }
  return rows;
}

// Returns at most `top` rows, the last of which sums up the others.
std::string Rows(const Ledger& ledger, LedgerGroup group, size_t top, size_t width) {
  const std::vector<const LedgerRow*> rows = RowsOf(ledger, group);
  const size_t shown = rows.size() > top ? top - 1 : rows.size();
  std::string text;
  uint64_t others = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i < shown) {
      text += RowLine(*rows[i], ledger, width);
    } else {
      others += rows[i]->bytes;
    }
  }
  if (shown == rows.size()) return text;
  return text + Line(Bytes(others), Share(others, ledger), Plural(rows.size() - shown, "other row"),
                     rows[shown]->known_by, "");
}

std::string SumLine(uint64_t bytes, const Ledger& ledger, const std::string& what,
                    const std::string& detail) {
  return Line(Bytes(bytes), Share(bytes, ledger), what, "sum", detail);
}

std::string UnexplainedDetail(const Ledger& ledger) {
  if (ledger.unexplained_bytes < 0) return "more was recorded than the driver reports";
  if (ledger.unexplained_in_process > 0 &&
      ledger.unexplained_in_process == ledger.unexplained_bytes) {
    return "in this process: no event explains it";
  }
  if (ledger.unexplained_in_process != 0) {
    return fmt::format("{} of it in this process", SignedBytes(ledger.unexplained_in_process));
  }
  return "in no known process";
}

std::string Table(const Ledger& ledger, size_t top, size_t width) {
  std::string text = Line("bytes", "share", "what", "known by", "details");
  const size_t reserved = RowsOf(ledger, LedgerGroup::kReserved).size();
  text += Rows(ledger, LedgerGroup::kReserved, SIZE_MAX, width);
  if (reserved > 1) {
    text += SumLine(ledger.bytes_of(LedgerGroup::kReserved), ledger, "= reserved",
                    "what the allocator took from the driver");
  }
  text += Rows(ledger, LedgerGroup::kOutsideFramework, top, width);
  std::string reported;
  if (ledger.reported_process_bytes) {
    reported =
        fmt::format("{} reports {}", SourceName(ledger), Bytes(*ledger.reported_process_bytes));
  }
  text += SumLine(ledger.process_bytes(), ledger, "= this process", reported);
  text += Rows(ledger, LedgerGroup::kNotApart, top, width);
  text += Rows(ledger, LedgerGroup::kOtherProcess, std::max<size_t>(top / 2, 2), width);
  text += Rows(ledger, LedgerGroup::kSystem, top, width);
  if (ledger.source.empty()) return text;
  const int64_t unexplained = ledger.unexplained_bytes;
  if (unexplained != 0) {
    text += Line((unexplained < 0 ? "-" : "") + Bytes(Magnitude(unexplained)), "", "unexplained",
                 "remainder", UnexplainedDetail(ledger));
  }
  return text + SumLine(ledger.driver_used_bytes, ledger, "= in use",
                        ledger.total_bytes ? "of " + Bytes(*ledger.total_bytes) : "");
}

std::string NotCounted(const Ledger& ledger) {
  std::string text;
  for (const analysis::NotCounted& uncounted : ledger.not_counted) {
    text += fmt::format("Not counted: {} of {}, {}.\n", Bytes(uncounted.bytes), uncounted.name,
                        uncounted.why);
  }
  return text;
}

std::string Unknown(const Ledger& ledger, const LedgerSource& source, size_t width) {
  std::string text;
  if (ledger.source.empty()) {
    text += source.is_imported
                ? "Not known: the driver's figures, which the imported file does not contain.\n"
                : "Not known: the driver's figures. To see why it was not queried: gpumemtrace "
                  "info " +
                      source.file + "\n";
  }
  for (size_t i = 0; i < std::min(kLedgerLacksShown, source.lacks.size()); ++i) {
    text += Shortened("Not known: " + source.lacks[i], width) + "\n";
  }
  return text;
}

std::string OtherDevices(const std::vector<Ledger>& ledgers, const Ledger& shown, size_t width) {
  std::string text;
  size_t lines = 0;
  for (const Ledger& ledger : ledgers) {
    if (&ledger == &shown) continue;
    if (++lines > kDevicesShown) continue;
    text += Verdict(ledger, width) + "\n";
  }
  if (lines <= kDevicesShown) return text;
  return text + Plural(lines - kDevicesShown, "other GPU") + ": --device N shows each\n";
}

// Returns the next command: for the largest part that is not live blocks and can be explained.
std::string Next(const Ledger& ledger, const LedgerSource& source) {
  if (source.is_live) return "The recording is at most a second behind: " + source.file + "\n";
  uint64_t holes = 0;
  const LedgerRow* outside = nullptr;
  for (const LedgerRow& row : ledger.rows) {
    if (row.group == LedgerGroup::kReserved && !row.is_live && !row.releasable) holes += row.bytes;
    const bool is_more = outside == nullptr || row.bytes > outside->bytes;
    if (row.stack != 0 && is_more) outside = &row;
  }
  if (holes > 0 && (outside == nullptr || holes > outside->bytes)) {
    return fmt::format("Next: gpumemtrace frag {} --at {}\n", source.file, ledger.at.name);
  }
  if (outside != nullptr) {
    return fmt::format("Next: gpumemtrace show {} stack/{}\n", source.file, outside->stack);
  }
  return fmt::format("Next: gpumemtrace report {} --at {}\n", source.file, ledger.at.name);
}

}  // namespace

const Ledger& Fullest(const std::vector<Ledger>& ledgers) {
  return *std::max_element(ledgers.begin(), ledgers.end(), [](const Ledger& a, const Ledger& b) {
    return a.driver_used_bytes < b.driver_used_bytes;
  });
}

std::string LedgerText(const std::vector<Ledger>& ledgers, const LedgerSource& source, size_t top,
                       const Terminal& terminal) {
  if (ledgers.empty()) {
    return "No GPU memory was held, and the driver was not queried: there is nothing to explain.\n";
  }
  const Ledger& fullest = Fullest(ledgers);
  const size_t width = static_cast<size_t>(std::max(terminal.width, 60));
  const std::string head = terminal.Bold(Verdict(fullest, width)) + "\n" + Moment(fullest, source) +
                           Reading(fullest) + "\n\n";
  const std::string tail = "\n" + NotCounted(fullest) + OtherDevices(ledgers, fullest, width) +
                           Unknown(fullest, source, width) + Next(fullest, source);
  if (top > 0) return head + Table(fullest, top, width) + tail;
  std::string text;
  for (top = kMaxRows; top >= kMinRows; --top) {
    text = head + Table(fullest, top, width) + tail;
    if (std::count(text.begin(), text.end(), '\n') <= kScreen) break;
  }
  return text;
}

}  // namespace gmt::answers
