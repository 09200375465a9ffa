#include "viewer/html/file_parts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analysis/report/report.h"
#include "viewer/html/varint_columns.h"
#include "viewer/questions/frame_table.h"
#include "viewer/questions/questions_json.h"
#include "viewer/slab/slab.h"

namespace gmt::viewer {
namespace {

using analysis::Step;

// Keeps as few points as possible. Maintains the wedge of lines from the last kept point that pass
// close enough to all points since; if a point lies outside the wedge, the point before it is kept.
class Clock {
 public:
  explicit Clock(double tolerance) : tolerance_(tolerance) { Keep(0, 0); }

  void Add(double event, double ns) {
    const double distance = event - kept_event_;
    const double slope = (ns - kept_ns_) / distance;
    if (has_last_ && (slope < low_ || slope > high_)) {
      Keep(last_event_, last_ns_);
      Add(event, ns);
      return;
    }
    low_ = std::max(low_, (ns - tolerance_ - kept_ns_) / distance);
    high_ = std::min(high_, (ns + tolerance_ - kept_ns_) / distance);
    last_event_ = event, last_ns_ = ns, has_last_ = true;
  }

  std::string Finish(uint64_t events) {
    if (has_last_) Keep(last_event_, last_ns_);
    slab::Writer writer("clock");
    writer.AddField("events", events);
    writer.AddField("points", points_);
    writer.AddArray("event", event_.bytes());
    writer.AddArray("ns", ns_.bytes());
    return std::move(writer).Finish();
  }

 private:
  void Keep(double event, double ns) {
    event_.Add(static_cast<uint64_t>(event));
    ns_.Add(static_cast<uint64_t>(ns));
    ++points_;
    kept_event_ = event, kept_ns_ = ns;
    low_ = -std::numeric_limits<double>::infinity();
    high_ = std::numeric_limits<double>::infinity();
    has_last_ = false;
  }

  const double tolerance_;
  VarintDeltas event_, ns_;
  uint64_t points_ = 0;
  double kept_event_ = 0, kept_ns_ = 0, last_event_ = 0, last_ns_ = 0;
  double low_ = 0, high_ = 0;
  bool has_last_ = false;
};

// Returns the names under which tables list the stack's function and file, its place, and whether
// its own frame is the program's Python code.
nlohmann::ordered_json OwnNames(uint32_t stack, analysis::StackTexts& texts) {
  const analysis::FrameText* own = texts.Own(stack);
  if (own == nullptr) return nullptr;
  return {analysis::GroupLabel(analysis::GroupBy::kFunction, *own),
          analysis::GroupLabel(analysis::GroupBy::kFile, *own), own->Place(), IsPrograms(own)};
}

}  // namespace

std::string MakeClockSlab(const analysis::Trace& trace, int64_t tolerance_ns) {
  Clock clock(static_cast<double>(tolerance_ns));
  // Time is made monotonic here, as on every axis.
  int64_t latest = 0;
  for (Step step = 1; step <= trace.last_step(); ++step) {
    latest = std::max(latest, trace.TimeOf(step));
    clock.Add(step, static_cast<double>(latest));
  }
  return clock.Finish(trace.last_step());
}

nlohmann::ordered_json StackTable(const StandaloneFile& file, const std::vector<uint32_t>& stacks) {
  using FrameKey = std::tuple<std::string, std::string, uint32_t, std::string, int>;
  std::map<FrameKey, size_t> known;
  auto frames = nlohmann::ordered_json::array(), ids = frames, keys = frames, labels = frames,
       lines = frames, sites = frames, backward_of = frames, of_stack = frames, owns = frames;
  const auto described = file.questions->AnswerStacks(stacks);
  if (described.ok()) {
    for (const StackInfo& stack : *described) {
      auto indexes = nlohmann::ordered_json::array();
      for (const Frame& frame : stack.frames) {
        const auto [found, is_new] = known.try_emplace(
            {frame.function, frame.file, frame.line, frame.library, frame.kind}, known.size());
        if (is_new) {
          frames.push_back({frame.function, frame.file, frame.line, frame.library, frame.kind});
        }
        indexes.push_back(found->second);
      }
      ids.push_back(stack.stack);
      keys.push_back(stack.key);
      labels.push_back(stack.label);
      lines.push_back(stack.line);
      sites.push_back(stack.site);
      backward_of.push_back(stack.backward_of);
      of_stack.push_back(std::move(indexes));
      owns.push_back(OwnNames(stack.stack, file.recording->examination().stacks()));
    }
  }
  return {{"frames", std::move(frames)},
          {"ids", std::move(ids)},
          {"keys", std::move(keys)},
          {"labels", std::move(labels)},
          {"sites", std::move(sites)},
          {"lines", std::move(lines)},
          {"backward_of", std::move(backward_of)},
          {"stacks", std::move(of_stack)},
          {"own", std::move(owns)}};
}

nlohmann::ordered_json Texts(const StandaloneFile& file) {
  const analysis::Trace& trace = file.recording->trace();
  // Few blocks have a name; those that do refer to it by string id.
  auto names = nlohmann::ordered_json::object();
  auto reasons = nlohmann::ordered_json::array();
  uint16_t most = 0;
  for (analysis::RowId row = 0; row < trace.rows.count(); ++row) {
    most = std::max(most, file.recording->categories().Of(row).reason);
    const uint32_t name = trace.rows.Name(row);
    if (name == 0) continue;
    auto& text = names[std::to_string(name)];
    if (text.is_null()) text = std::string(file.recording->definitions().string(name));
  }
  if (trace.rows.count() > 0) {
    for (uint16_t reason = 0; reason <= most; ++reason) {
      reasons.push_back(file.recording->categories().ReasonText(reason));
    }
  }
  auto confidences = nlohmann::ordered_json::array();
  for (auto confidence :
       {analysis::Confidence::kLow, analysis::Confidence::kMedium, analysis::Confidence::kHigh}) {
    confidences.push_back(std::string(analysis::NameOf(confidence)));
  }
  return {{"names", std::move(names)},
          {"reasons", std::move(reasons)},
          {"confidences", std::move(confidences)}};
}

nlohmann::ordered_json SegmentTable(const StandaloneFile& file) {
  const analysis::Trace& trace = file.recording->trace();
  const analysis::Rows& rows = trace.rows;
  auto devices = nlohmann::ordered_json::object();
  const auto hex = [](uint64_t value) { return absl::StrCat("0x", absl::Hex(value)); };
  const auto add = [&](analysis::RowId row, uint64_t address, uint64_t size, Step birth, Step death,
                       bool is_page, std::optional<uint64_t> stream, uint32_t stack) {
    const nlohmann::ordered_json none = nullptr;
    devices[std::to_string(rows.device[row])].push_back(
        {hex(address), size, birth, death, is_page ? 1 : 0,
         stream.has_value() ? nlohmann::ordered_json(hex(*stream)) : none,
         rows.Pool(row).value_or(0) != 0 ? nlohmann::ordered_json(hex(*rows.Pool(row))) : none,
         stack});
  };
  for (analysis::RowId row = 0; row < rows.count(); ++row) {
    const uint16_t flags = rows.flags[row];
    if ((flags & analysis::kRowHoldsBlocks) == 0 || (flags & analysis::kRowHandle) != 0) continue;
    std::optional<uint64_t> stream;
    if ((flags & analysis::kRowHasStream) != 0) stream = rows.stream[row];
    add(row, rows.address[row], rows.size[row], rows.birth[row], rows.death[row], false, stream,
        rows.stack[row]);
  }
  for (const analysis::Mapping& mapping : trace.mappings) {
    if (mapping.physical == analysis::kNoRow) continue;
    if ((rows.flags[mapping.physical] & analysis::kRowHoldsBlocks) == 0) continue;
    std::optional<uint64_t> stream;
    if (mapping.has_stream) stream = mapping.stream;
    add(mapping.physical, mapping.address, mapping.size, mapping.birth,
        std::min(mapping.death, rows.death[mapping.physical]), true, stream, mapping.stack);
  }
  return devices;
}

nlohmann::ordered_json EventTable(const StandaloneFile& file) {
  EventsQuery query;
  for (const EventKind kind : {EventKind::kAlloc, EventKind::kFree, EventKind::kFreeRequested}) {
    query.kinds &= ~(1u << static_cast<uint32_t>(kind));
  }
  query.limit = kMaxEventRows;
  auto devices = nlohmann::ordered_json::object();
  for (uint32_t lane = 0; lane < file.index->lanes().size(); ++lane) {
    const std::string device = std::to_string(file.index->lanes()[lane].device);
    if (devices.contains(device)) continue;
    query.lane = lane;
    auto rows = nlohmann::ordered_json::array();
    uint64_t total = 0;
    do {
      query.offset = rows.size();
      const auto page = file.questions->AnswerEvents(query);
      if (!page.ok() || page->rows.empty()) break;
      total = page->total;
      for (const EventRow& row : page->rows) rows.push_back(ToJson(row));
    } while (rows.size() < std::min<uint64_t>(total, kMaxSideEvents));
    devices[device] = {{"rows", std::move(rows)}, {"total", total}};
  }
  return devices;
}

nlohmann::ordered_json SourceTable(const StandaloneFile& file) {
  constexpr size_t kStacks = 100, kFramesOfOne = 4, kLines = 300;
  const std::vector<analysis::Amount>& amounts = file.recording->examination().replay().stacks();
  std::vector<uint32_t> stacks;
  for (uint32_t stack = 1; stack < amounts.size(); ++stack) {
    if (amounts[stack].peak > 0) stacks.push_back(stack);
  }
  std::stable_sort(stacks.begin(), stacks.end(),
                   [&](uint32_t a, uint32_t b) { return amounts[a].peak > amounts[b].peak; });
  stacks.resize(std::min(stacks.size(), kStacks));

  auto sources = nlohmann::ordered_json::object();
  const auto described = file.questions->AnswerStacks(stacks);
  if (!described.ok()) return sources;
  for (const StackInfo& stack : *described) {
    size_t taken = 0;
    for (const Frame& frame : stack.frames) {
      if (frame.kind == Frame::kFolded || frame.file.empty() || frame.line == 0) continue;
      if (++taken > kFramesOfOne || sources.size() >= kLines) break;
      const std::string key = absl::StrCat(frame.file, ":", frame.line);
      if (sources.contains(key)) continue;
      const auto source = file.questions->AnswerSource(frame.file, frame.line);
      if (source.ok() && !source->lines.empty()) sources[key] = ToJson(*source);
    }
  }
  return sources;
}

}  // namespace gmt::viewer
