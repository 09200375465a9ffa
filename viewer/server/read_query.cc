#include "viewer/server/read_query.h"

namespace gmt::viewer {
namespace {

constexpr uint32_t kMaxRows = 1 << 15;  // pixels
constexpr uint32_t kMaxSparkline = 1000;
constexpr uint64_t kMaxSize = uint64_t{1} << 53;  // the page's numbers are doubles

const std::vector<std::string> kAxes = {"time", "event", "step"};

uint32_t Small(Parameters& parameters, const std::string& name, uint32_t min = 0,
               uint32_t max = UINT32_MAX) {
  return static_cast<uint32_t>(parameters.Integer(name, min, max));
}

std::optional<uint32_t> OptionalSmall(Parameters& parameters, const std::string& name) {
  const auto value = parameters.OptionalInteger(name, 0, UINT32_MAX);
  return value ? std::optional(static_cast<uint32_t>(*value)) : std::nullopt;
}

// REQUIRES: the values of the enum are in the order of `names`.
template <typename Enum>
Enum Named(Parameters& parameters, const std::string& name, const std::vector<std::string>& names) {
  return static_cast<Enum>(parameters.Choice(name, names));
}

// Names of parameters begin with `prefix`.
std::optional<Box> ReadBox(Parameters& parameters, const std::string& prefix) {
  constexpr size_t kNone = 0;
  const size_t layout =
      parameters.ChoiceOr(prefix + "box_layout", {"", "stacked", "address"}, kNone);
  if (layout == kNone) return std::nullopt;
  Box box;
  box.layout = static_cast<Layout>(layout - 1);
  box.axis = Named<Axis>(parameters, prefix + "box_axis", kAxes);
  box.low = parameters.Number(prefix + "box_low");
  box.high = parameters.Number(prefix + "box_high");
  if (!(box.low < box.high)) {
    parameters.Refuse(prefix + "box_low: does not lie below " + prefix + "box_high");
  }
  return box;
}

std::optional<EventRange> ReadOtherRange(Parameters& parameters) {
  const auto from = OptionalSmall(parameters, "other_from");
  const auto to = OptionalSmall(parameters, "other_to");
  std::optional<Box> box = ReadBox(parameters, "other_");
  if (!from && !to && !box) return std::nullopt;
  if (!from || !to) {
    parameters.Refuse("other_from and other_to: both of them or none");
    return std::nullopt;
  }
  return EventRange{*from, *to, box};
}

}  // namespace

Filter ReadFilter(Parameters& parameters) {
  Filter filter;
  filter.text = parameters.Text("text");
  filter.category = parameters.Text("category");
  filter.stack = OptionalSmall(parameters, "stack");
  filter.forward_stack = OptionalSmall(parameters, "forward_stack");
  filter.key = OptionalSmall(parameters, "key");
  filter.stream = parameters.Text("stream");
  filter.thread = parameters.Text("thread");
  filter.min_size = parameters.OptionalInteger("min_size", 0, kMaxSize);
  filter.max_size = parameters.OptionalInteger("max_size", 0, kMaxSize);
  return filter;
}

Window ReadWindow(Parameters& parameters) {
  Window window;
  window.lane = Small(parameters, "lane");
  window.axis = Named<Axis>(parameters, "axis", kAxes);
  window.from = parameters.Number("from");
  window.to = parameters.Number("to");
  window.columns = Small(parameters, "columns", 1, kMaxColumns);
  if (!(window.from < window.to)) parameters.Refuse("from: does not lie before to");
  return window;
}

BlockQuery ReadBlockQuery(Parameters& parameters) {
  BlockQuery query;
  query.window = ReadWindow(parameters);
  query.layout = Named<Layout>(parameters, "layout", {"stacked", "address"});
  query.low = parameters.Number("low");
  query.high = parameters.Number("high");
  query.rows = Small(parameters, "rows", 1, kMaxRows);
  if (!(query.low < query.high)) parameters.Refuse("low: does not lie below high");
  return query;
}

Scope ReadScope(Parameters& parameters) {
  Scope scope;
  scope.lane = Small(parameters, "lane");
  scope.filter = ReadFilter(parameters);
  scope.of = Named<Scope::Of>(parameters, "of", {"live", "growth", "born", "kept"});
  scope.from = Small(parameters, "from");
  scope.to = Small(parameters, "to");
  return scope;
}

FlameQuery ReadFlameQuery(Parameters& parameters) {
  FlameQuery query;
  query.scope = ReadScope(parameters);
  query.inverted = parameters.FlagOr("inverted", false);
  query.folded = parameters.FlagOr("folded", false);
  return query;
}

TableQuery ReadTableQuery(Parameters& parameters) {
  TableQuery query;
  query.scope = ReadScope(parameters);
  query.by = Named<TableQuery::By>(
      parameters, "by",
      {"stack", "function", "file", "category", "size", "stream", "thread", "block"});
  query.sort = Named<TableQuery::Sort>(
      parameters, "sort", {"bytes", "blocks", "peak", "growth", "rate", "lifetime", "name"});
  query.descending = parameters.FlagOr("descending", true);
  query.offset = parameters.IntegerOr("offset", 0, UINT32_MAX, 0);
  query.limit = Small(parameters, "limit", 1, kMaxTableRows);
  query.sparkline = static_cast<uint32_t>(parameters.IntegerOr("sparkline", 0, kMaxSparkline, 0));
  return query;
}

RangeQuery ReadRangeQuery(Parameters& parameters) {
  RangeQuery query;
  query.lane = Small(parameters, "lane");
  query.filter = ReadFilter(parameters);
  query.from = Small(parameters, "from");
  query.to = Small(parameters, "to");
  query.box = ReadBox(parameters, "");
  query.other = ReadOtherRange(parameters);
  query.within = parameters.Texts("within");
  query.by = Named<RangeQuery::By>(
      parameters, "by",
      {"category", "role", "dtype", "module", "function", "line", "stack", "thread", "stream"});
  query.folded = parameters.FlagOr("folded", false);
  query.sort =
      Named<RangeQuery::Sort>(parameters, "sort",
                              {"bytes", "inclusive", "byte_seconds", "mean_bytes", "allocations",
                               "allocation_rate", "growth", "end_bytes", "name"});
  query.side = static_cast<RangeQuery::Side>(
      parameters.ChoiceOr("side", {"this", "other", "difference"}, RangeQuery::kThis));
  query.descending = parameters.FlagOr("descending", true);
  query.offset = parameters.IntegerOr("offset", 0, UINT32_MAX, 0);
  query.limit = Small(parameters, "limit", 1, kMaxTableRows);
  return query;
}

EventsQuery ReadEventsQuery(Parameters& parameters) {
  EventsQuery query;
  query.lane = Small(parameters, "lane");
  query.kinds = Small(parameters, "kinds", 0, kAllEventKinds);
  query.offset = parameters.IntegerOr("offset", 0, UINT32_MAX, 0);
  query.limit = Small(parameters, "limit", 1, kMaxEventRows);
  query.event = Small(parameters, "event");
  return query;
}

std::optional<OtherSide> ReadOtherSide(Parameters& parameters, size_t files) {
  const auto file = parameters.OptionalInteger("other_file", 0, files - 1);
  const auto lane = OptionalSmall(parameters, "other_lane");
  const auto to = OptionalSmall(parameters, "other_to");
  const auto window = parameters.OptionalInteger("other_window", 0, UINT32_MAX);
  if (!file && !lane && !to) return std::nullopt;
  if (!file || !lane || !to) {
    parameters.Refuse("other_file, other_lane and other_to: all of them or none");
    return std::nullopt;
  }
  return OtherSide{static_cast<size_t>(*file), *lane, *to, window};
}

}  // namespace gmt::viewer
