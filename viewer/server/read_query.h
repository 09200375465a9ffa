// viewer/server/read_query.h
//
// The parameters of a question as the struct that the question is asked with; names and meaning as in
// viewer/page/src/data/protocol.ts. What is wrong stands in Parameters::Finish(); what only a
// recording can know, as whether it has that lane, its answer says.
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

// The other side of a flame graph that compares: given whole or not at all.
struct OtherSide {
  size_t file = 0;
  uint32_t lane = 0, to = 0;
  std::optional<uint64_t> window;  // of a recording that goes on
};
std::optional<OtherSide> ReadOtherSide(Parameters& parameters, size_t files);

inline constexpr uint32_t kMaxFound = 10'000;
inline constexpr uint32_t kMaxStacks = 1000;

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_SERVER_READ_QUERY_H_
