#include "interop/timeline/chrome_trace.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"

namespace gmt::interop {
namespace {

std::string ChromeText(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

class ChromeTraceWriter {
 public:
  ChromeTraceWriter(const analysis::Trace& trace, std::ostream& out)
      : out_(out),
        base_ns_(KinetoBaseTime(trace.start_unix_ns)),
        offset_ns_(trace.start_unix_ns - base_ns_),
        pid_(trace.pid) {}

  void Write(const Timeline& timeline) {
    out_ << "{\"displayTimeUnit\": \"ms\", \"baseTimeNanoseconds\": " << base_ns_
         << ", \"exporter\": \"gpumemtrace\", \"traceEvents\": [";
    for (const Timeline::Counter& counter : timeline.counters) {
      const std::string name = ChromeText(counter.name);
      for (const Timeline::Point& point : counter.points) {
        Event("C", name, point.t_ns, fmt::format(R"("args": {{"bytes": {}}})", point.bytes));
      }
    }
    std::map<std::string, int> lanes;  // tracks with one name need different ids
    for (const Timeline::Track& track : timeline.tracks) {
      const int lane = ++lanes[track.name];
      // A text, because the profiler has a track for the number of each thread.
      const std::string tid =
          ChromeText(lane == 1 ? absl::StrCat("memory: ", track.name)
                               : absl::StrCat("memory: ", track.name, " (", lane, ")"));
      WriteTrack(track, absl::StrCat(R"("tid": )", tid));
    }
    out_ << "\n]}\n";
  }

 private:
  void WriteTrack(const Timeline::Track& track, const std::string& tid) {
    for (const Timeline::Slice& slice : track.slices) {
      Event("X", ChromeText(slice.name), slice.begin_ns,
            absl::StrCat(R"("dur": )", Microseconds(slice.end_ns - slice.begin_ns), ", ", tid));
      if (slice.flow) WriteFlow(slice, tid);
    }
    for (const Timeline::Instant& instant : track.instants) {
      Event("i", ChromeText(instant.name), instant.t_ns, absl::StrCat(R"("s": "t", )", tid));
    }
  }

  void WriteFlow(const Timeline::Slice& slice, const std::string& tid) {
    Event(slice.ends_flow ? "f" : "s", ChromeText("forward to backward"), slice.begin_ns,
          absl::StrCat(R"("cat": "memory", "id": )", *slice.flow,
                       slice.ends_flow ? R"(, "bp": "e", )" : ", ", tid));
  }

  void Event(const char* phase, const std::string& name, int64_t t_ns, const std::string& rest) {
    out_ << (is_first_ ? "\n" : ",\n")
         << fmt::format(R"({{"ph": "{}", "name": {}, "ts": {}, "pid": {}, {}}})", phase, name,
                        Microseconds(offset_ns_ + t_ns), pid_, rest);
    is_first_ = false;
  }
  static std::string Microseconds(int64_t ns) {
    const auto bits = static_cast<uint64_t>(ns);
    const uint64_t size = ns < 0 ? 0 - bits : bits;
    return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
  }

  std::ostream& out_;
  const int64_t base_ns_, offset_ns_;
  const uint64_t pid_;
  bool is_first_ = true;
};

}  // namespace

int64_t KinetoBaseTime(int64_t unix_ns) {
  constexpr int64_t kPeriod_ns = int64_t{7'889'238} * 1'000'000'000;  // 3 mean months
  return unix_ns / kPeriod_ns * kPeriod_ns;
}

void WriteChromeTrace(const analysis::Examination& examination, const Timeline& timeline,
                      std::ostream& out) {
  ChromeTraceWriter(examination.trace(), out).Write(timeline);
}

}  // namespace gmt::interop
