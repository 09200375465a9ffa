// viewer/server/read_query.h
//
// Reads the parameters of a query into the query's struct; names and meaning are those of
// viewer/page/src/data/protocol.ts. Errors are reported by Parameters::Finish(). What only a
// recording knows, such as whether it has that lane, is checked when the query is answered.
//
// Thread safety: pure functions.

#ifndef GMT_VIEWER_SERVER_READ_QUERY_H_
#define GMT_VIEWER_SERVER_READ_QUERY_H_

#include <cstdint>
#include <optional>

#include "viewer/index/tiles.h"
#include "viewer/questions/queries.h"
#include "viewer/server/parameters.h"

namespace gmt::viewer {

Window ReadWindow(Parameters& parameters);
Filter ReadFilter(Parameters& parameters);
BlockQuery ReadBlockQuery(Parameters& parameters);
Scope ReadScope(Parameters& parameters);
FlameQuery ReadFlameQuery(Parameters& parameters);
TableQuery ReadTableQuery(Parameters& parameters);
RangeQuery ReadRangeQuery(Parameters& parameters);
EventsQuery ReadEventsQuery(Parameters& parameters);

// The other side of a comparing flame graph: given completely or not at all.
struct OtherSide {
  size_t file = 0;
  uint32_t lane = 0, to = 0;
  std::optional<uint64_t> window;  // of a recording in progress
};
std::optional<OtherSide> ReadOtherSide(Parameters& parameters, size_t files);

inline constexpr uint32_t kMaxFound = 10'000;
inline constexpr uint32_t kMaxStacks = 1000;

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_READ_QUERY_H_
