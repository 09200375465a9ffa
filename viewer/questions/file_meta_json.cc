// FileMeta of protocol.ts: the description of a recording.

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/examination/alive.h"
#include "analysis/examination/failures.h"
#include "viewer/index/names.h"
#include "viewer/questions/loop_phases.h"
#include "viewer/questions/questions_json.h"

namespace gmt::viewer {
namespace {

using analysis::Trace;
using Json = nlohmann::ordered_json;

constexpr size_t kMaxSpans = 10'000;

Json InstantJson(const std::string& name, analysis::Step event, int64_t t_ns) {
  return {{"name", name}, {"event", event}, {"ns", t_ns}};
}

Json StepsJson(const analysis::Cycles& cycles) {
  Json json = {{"source", cycles.cycles.empty() ? "" : cycles.source},
               {"inferred", cycles.inferred},
               {"begin", Json::array()},
               {"end", Json::array()},
               {"begin_ns", Json::array()},
               {"end_ns", Json::array()}};
  for (const analysis::Cycle& cycle : cycles.cycles) {
    json["begin"].push_back(cycle.begin);
    json["end"].push_back(cycle.end);
    json["begin_ns"].push_back(cycle.begin_t_ns);
    json["end_ns"].push_back(cycle.end_t_ns);
  }
  return json;
}

// Maps threads to their codes in tiles; 0: unknown.
class ThreadCodes {
 public:
  explicit ThreadCodes(const std::vector<std::string>& names) {
    for (size_t i = 0; i < names.size(); ++i) codes_[names[i]] = i;
  }
  size_t Of(uint32_t thread) const {
    const auto found = codes_.find(std::to_string(thread));
    return found == codes_.end() ? 0 : found->second;
  }

 private:
  std::map<std::string, size_t> codes_;
};

Json PhasesJson(const Trace& trace, const LoopPhases& phases) {
  Json json = Json::array();
  for (const LoopPhases::Span& span : phases.spans()) {
    if (json.size() == kMaxSpans) break;
    const std::string name(analysis::NameOf(span.phase));
    json.push_back({{"name", name},
                    {"kind", name},
                    {"begin", span.begin},
                    {"end", span.end},
                    {"begin_ns", trace.TimeOf(span.begin)},
                    {"end_ns", trace.TimeOf(span.end)},
                    {"depth", 0},
                    {"thread", 0}});
  }
  return json;
}

// A range, limited to the recording if it has no begin or end of its own.
struct Span {
  const analysis::Range* range = nullptr;
  int64_t begin_ns = 0, end_ns = 0;
  size_t depth = 0;
};

std::vector<Span> SpansOf(const Trace& trace) {
  std::vector<Span> spans;
  for (const analysis::Range& range : trace.ranges) {
    Span span{&range, std::max<int64_t>(range.begin_t_ns, 0),
              std::min(range.end_t_ns, trace.end_t_ns)};
    span.end_ns = std::max(span.begin_ns, span.end_ns);
    spans.push_back(span);
  }
  return spans;
}

// Computes how many ranges of its thread contain each span. REQUIRES: spans are sorted by begin.
void FindDepths(std::vector<Span>& spans) {
  std::map<uint32_t, std::vector<int64_t>> open;  // ends, by thread
  for (Span& span : spans) {
    std::vector<int64_t>& ends = open[span.range->thread];
    while (!ends.empty() && ends.back() <= span.begin_ns) ends.pop_back();
    span.depth = ends.size();
    ends.push_back(span.end_ns);
  }
}

// Returns the longest spans, sorted by begin.
std::vector<Span> LongestOf(std::vector<Span> spans) {
  if (spans.size() <= kMaxSpans) return spans;
  std::vector<size_t> order(spans.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto length = [&](size_t i) {
    return static_cast<uint64_t>(spans[i].end_ns) - static_cast<uint64_t>(spans[i].begin_ns);
  };
  const auto end = order.begin() + kMaxSpans;
  std::nth_element(order.begin(), end, order.end(),
                   [&](size_t a, size_t b) { return length(a) > length(b); });
  order.erase(end, order.end());
  std::sort(order.begin(), order.end());
  std::vector<Span> longest;
  for (const size_t i : order) longest.push_back(spans[i]);
  return longest;
}

Json RangesJson(const analysis::Examination& examination, const ThreadCodes& threads) {
  const Trace& trace = examination.trace();
  std::vector<Span> spans = SpansOf(trace);
  FindDepths(spans);
  Json json = Json::array();
  for (const Span& span : LongestOf(std::move(spans))) {
    json.push_back({{"name", analysis::KindOfRange(*span.range, examination.definitions())},
                    {"kind", examination.definitions().string(span.range->domain)},
                    {"begin", span.range->begin},
                    {"end", std::min(span.range->end, trace.last_step())},
                    {"begin_ns", span.begin_ns},
                    {"end_ns", span.end_ns},
                    {"depth", span.depth},
                    {"thread", threads.Of(span.range->thread)}});
  }
  return json;
}

Json MarksJson(const Trace& trace) {
  Json json = Json::array();
  for (const analysis::Mark& mark : trace.marks) {
    if (json.size() == kMaxSpans) break;
    const std::string name = mark.index ? mark.name + " " + std::to_string(*mark.index) : mark.name;
    json.push_back(InstantJson(name, mark.step, mark.t_ns));
  }
  return json;
}

Json InstantsJson(const std::vector<analysis::NamedInstant>& instants) {
  Json json = Json::array();
  for (const analysis::NamedInstant& instant : instants) {
    if (json.size() == kMaxSpans) break;
    json.push_back(InstantJson(instant.name, instant.step, instant.t_ns));
  }
  return json;
}

Json OomsJson(const analysis::Examination& examination) {
  const Trace& trace = examination.trace();
  Json json = Json::array();
  if (trace.failed.empty()) return json;
  for (const size_t index : FindFailures(examination).counted) {
    if (json.size() == kMaxSpans) break;
    const analysis::FailedAllocation& failed = trace.failed[index];
    json.push_back(InstantJson("out of memory", failed.step, failed.t_ns));
    json.back()["device"] = failed.device;
    json.back()["requested"] = failed.size;
    json.back()["stack"] = failed.stack;
  }
  return json;
}

Json RetriesJson(const analysis::Examination& examination) {
  Json json = Json::array();
  for (const analysis::AllocatorAction& action : examination.allocator_actions()) {
    if (action.kind != analysis::AllocatorAction::kRetry) continue;
    if (json.size() == kMaxSpans) break;
    json.push_back(InstantJson(action.succeeded ? "retry" : "retry that did not help", action.step,
                               action.t_ns));
  }
  return json;
}

Json CategoriesJson() {
  Json json = Json::array();
  for (size_t i = 0; i < analysis::kCategories; ++i) {
    json.push_back(analysis::NameOf(static_cast<analysis::Category>(i)));
  }
  return json;
}

// By code in tiles. Empty if PyTorch reported no roles: the others repeat the category.
Json RolesJson(const Trace& trace) {
  Json json = Json::array();
  if (trace.role_changes.empty()) return json;
  json.push_back(kUnknownName);
  for (size_t i = 1; i < analysis::kAliveReasons; ++i) {
    json.push_back(analysis::TextOf(static_cast<analysis::AliveReason>(i)));
  }
  return json;
}

}  // namespace

Json FileMetaJson(const analysis::Examination& examination, const FileNames& names,
                  const Json& lanes) {
  const Trace& trace = examination.trace();
  const ThreadCodes threads(names.threads);
  return {{"file", names.file},
          {"name", names.path.substr(names.path.rfind('/') + 1)},
          {"path", names.path},
          {"imported_from", trace.imported_from},
          {"pid", trace.pid},
          {"rank", trace.rank ? Json(*trace.rank) : Json(nullptr)},
          {"argv", trace.argv},
          {"start_unix_ns", std::to_string(trace.start_unix_ns)},
          {"end_ns", trace.end_t_ns},
          {"events", trace.last_step()},
          {"lanes", lanes},
          {"categories", CategoriesJson()},
          {"streams", names.streams},
          {"threads", names.threads},
          {"roles", RolesJson(trace)},
          {"dtypes", names.dtypes},
          {"steps", StepsJson(examination.cycles())},
          {"phases", PhasesJson(trace, LoopPhases(examination))},
          {"ranges", RangesJson(examination, threads)},
          {"marks", MarksJson(trace)},
          {"snapshots", InstantsJson(trace.snapshots)},
          {"ooms", OomsJson(examination)},
          {"retries", RetriesJson(examination)},
          {"losses", InstantsJson(trace.gaps)},
          {"lacks", names.lacks},
          {"omitted", nullptr}};
}

}  // namespace gmt::viewer
