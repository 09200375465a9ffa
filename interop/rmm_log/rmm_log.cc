#include "interop/rmm_log/rmm_log.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "interop/event_log/lines.h"

namespace gmt::interop {
namespace {

using absl::string_view;
using format::Event;

constexpr char kColumns[] = "Thread,Time,Action,Pointer,Size,Stream";
constexpr char kRmmHeap[] = "rmm";
constexpr size_t kRmmBatch = 32768;
constexpr int64_t kNsPerSecond = 1'000'000'000, kNsPerDay = 24 * 3600 * kNsPerSecond;

template <typename T>
std::optional<T> RmmNumber(string_view text, int base = 10) {
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Pointers and streams are printed as by printf ("0x7f00", "(nil)") or by a C++ stream ("0").
std::optional<uint64_t> RmmPointer(string_view text) {
  if (text == "(nil)") return 0;
  absl::ConsumePrefix(&text, "0x");
  return RmmNumber<uint64_t>(text, 16);
}

// "15:47:02.841961", with ':' instead of '.' in releases before 24.
std::optional<int64_t> TimeOfDay(string_view text) {
  constexpr size_t kMicroseconds = 9;
  if (text.size() != kMicroseconds + 6 || text[2] != ':' || text[5] != ':' ||
      (text[8] != '.' && text[8] != ':')) {
    return std::nullopt;
  }
  const auto hour = RmmNumber<uint32_t>(text.substr(0, 2));
  const auto minute = RmmNumber<uint32_t>(text.substr(3, 2));
  const auto second = RmmNumber<uint32_t>(text.substr(6, 2));
  const auto us = RmmNumber<uint32_t>(text.substr(kMicroseconds));
  if (!hour || !minute || !second || !us || *hour > 23 || *minute > 59 || *second > 60)
    return std::nullopt;
  return (*hour * 3600 + *minute * 60 + *second) * kNsPerSecond + int64_t{*us} * 1000;
}

Kind RmmAction(string_view text) {
  if (text == "allocate") return ALLOC;
  if (text == "free") return FREE;
  return text == "allocate failure" ? ALLOC_FAILED : KIND_UNSPECIFIED;
}

class RmmParser {
 public:
  explicit RmmParser(uint32_t heap) : heap_(heap) {}

  // Returns what is wrong with the line, "" if nothing is.
  std::string Take(string_view line, Event* event) {
    std::array<string_view, 6> columns;
    for (size_t i = 0; i < columns.size(); ++i) {
      const size_t comma = line.find(',');
      if ((comma == line.npos) != (i + 1 == columns.size())) return "does not have six columns";
      columns[i] = line.substr(0, comma);
      line.remove_prefix(comma == line.npos ? line.size() : comma + 1);
    }
    const auto thread = RmmNumber<uint64_t>(columns[0]);
    const auto time = TimeOfDay(columns[1]);
    const auto address = RmmPointer(columns[3]), stream = RmmPointer(columns[5]);
    const auto size = RmmNumber<uint64_t>(columns[4]);
    *event = {};
    event->kind = RmmAction(columns[2]);
    if (!thread) return "has no number in the column Thread";
    if (!time) return "has no time of day in the column Time";
    if (event->kind == KIND_UNSPECIFIED)
      return "has neither allocate, free nor allocate failure in the column Action";
    if (!address || !stream) return "has no address in the column Pointer or Stream";
    if (!size) return "has no number in the column Size";
    event->heap = heap_;
    event->memory = BLOCK;
    event->t_ns = SinceFirst(*time);
    event->size = *size;
    event->stream = *stream;
    event->present = format::kHasTime | format::kHasSize | format::kHasStream;
    if (*thread <= UINT32_MAX) {
      event->thread = static_cast<uint32_t>(*thread);
      event->present |= format::kHasThread;
    }
    if (event->kind != ALLOC_FAILED) {
      event->address = *address;
      event->present |= format::kHasAddress;
    }
    return "";
  }

 private:
  int64_t SinceFirst(int64_t time_of_day) {
    if (first_ == kNone) first_ = last_ = time_of_day;
    // Threads take the time before they wait for the log, so that lines may be slightly out of
    // order; at midnight too.
    if (last_ - time_of_day > kNsPerDay / 2) ++day_;
    if (time_of_day - last_ > kNsPerDay / 2) --day_;
    last_ = time_of_day;
    return day_ * kNsPerDay + time_of_day - first_;
  }

  static constexpr int64_t kNone = -1;

  const uint32_t heap_;
  int64_t first_ = kNone, last_ = 0, day_ = 0;
};

}  // namespace

absl::Status ReadRmmLog(format::ByteSource& log, string_view name,
                        format::DefinitionsBuilder& definitions, format::RecordingVisitor& visitor,
                        Notes* notes, bool* is_whole) {
  Lines lines(&log, name);
  RmmParser parser(definitions.InternString(kRmmHeap));
  format::EventBatch batch;
  std::string line;
  for (;;) {
    const absl::StatusOr<bool> any = lines.Next(&line);
    if (!any.ok()) return any.status();
    if (!*any) break;
    if (lines.is_cut()) {
      notes->push_back(
          absl::StrCat(name, ": line ", lines.number(), " is incomplete and was left out"));
      *is_whole = false;
      break;
    }
    const string_view text = absl::StripSuffix(line, "\r");
    if (lines.number() == 1 || text.empty()) continue;
    Event event;
    if (const std::string problem = parser.Take(text, &event); !problem.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": line ", lines.number(), " ", problem));
    }
    batch.events.push_back(event);
    if (batch.events.size() < kRmmBatch) continue;
    absl::Status status = visitor.OnEvents(batch);
    if (!status.ok()) return status;
    batch.Clear();
  }
  return batch.events.empty() ? absl::OkStatus() : visitor.OnEvents(batch);
}

bool LooksLikeRmmLog(string_view first_bytes) {
  const string_view line = first_bytes.substr(0, first_bytes.find('\n'));
  return absl::StripSuffix(line, "\r") == kColumns;
}

}  // namespace gmt::interop
