// viewer/html/lane_series.h
//
// The curves of a lane other than that of its blocks: reserved memory as changes, which are found
// by querying the index, so that the standalone file and the server show the same; used memory of
// the device as samples, at most 100,000.
//
// Thread safety: same as the index.

#ifndef GMT_VIEWER_HTML_LANE_SERIES_H_
#define GMT_VIEWER_HTML_LANE_SERIES_H_

#include "viewer/html/standalone_file.h"
#include "viewer/slab/slab.h"

namespace gmt::viewer {

void WriteSeries(const StandaloneFile& file, uint32_t lane, slab::Writer* writer);

}  // namespace gmt::viewer

#endif  // GMT_VIEWER_HTML_LANE_SERIES_H_
