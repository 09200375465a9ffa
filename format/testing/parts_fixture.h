// format/testing/parts_fixture.h
//
// For tests: headers of parts of a recording.
//
// Thread safety: free functions, callable from any thread.

#ifndef GMT_FORMAT_TESTING_PARTS_FIXTURE_H_
#define GMT_FORMAT_TESTING_PARTS_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "format/recording_writer.h"
#include "proto/gmt.pb.h"

namespace gmt::format {

// Returns a header of one run, so that its parts belong together.
inline Header PartHeader(uint32_t part) {
  Header header;
  header.set_tool_version("test");
  header.set_pid(4711);
  header.set_start_monotonic_ns(77);
  header.set_part(part);
  return header;
}

inline std::unique_ptr<Sink> NewFile(const std::string& path) {
  auto sink = FileSink(path, IfExists::kFail);
  EXPECT_TRUE(sink.ok()) << sink.status();
  return *std::move(sink);
}

}  // namespace gmt::format

#endif  // GMT_FORMAT_TESTING_PARTS_FIXTURE_H_
