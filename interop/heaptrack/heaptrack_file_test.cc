#include "interop/heaptrack/heaptrack_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "analysis/testing/event_script.h"
#include "format/units.h"

namespace gmt::interop {
namespace {

using analysis::EventScript;
using ::testing::HasSubstr;

class HeaptrackFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> Make(std::optional<int32_t> device = {},
                                   const std::string& heap = "") {
    const analysis::Trace trace = script_.Build();
    const analysis::Examination examination(trace, script_.definitions());
    std::stringstream out;
    const absl::Status status = WriteHeaptrackFile(examination, device, heap, out);
    if (!status.ok()) {
      EXPECT_EQ(out.str(), "");
      return status;
    }
    return out.str();
  }

  EventScript script_;
};

TEST_F(HeaptrackFileTest, EveryChangeIsALineAndDefinitionsComeOnce) {
  script_.Alloc(0x1000, 512, {"inner", "outer"});
  script_.Alloc(0x2000, 512, {"inner", "outer"});
  script_.Free(0x1000);
  script_.Alloc(0x3000, 4096, {"other", "outer"});
  const std::string file = Make().value();
  EXPECT_THAT(file, HasSubstr("v 10400 2\nX ?\n"));
  EXPECT_THAT(file, HasSubstr("s outer\n"));
  EXPECT_THAT(file, HasSubstr("s /src/outer.py\ni 1 0 1 2 a\nt 1 0\n"));
  EXPECT_THAT(file, HasSubstr("s inner\n"));
  EXPECT_THAT(file, HasSubstr("t 2 1\na 200 2\n+ 0\n"));
  EXPECT_THAT(file, HasSubstr("+ 0\nc "));
  EXPECT_THAT(file, HasSubstr("- 0\n"));
  EXPECT_THAT(file, HasSubstr("t 3 1\na 1000 3\n+ 1\n"));
}

TEST_F(HeaptrackFileTest, NamesCannotForgeLines) {
  script_.Alloc(0x1000, 512, {"f\n+ 0"});
  EXPECT_THAT(Make().value(), HasSubstr("s f\\n+ 0\n"));
}

TEST_F(HeaptrackFileTest, DevicesAreNotAddedUp) {
  script_.Alloc(0x1000, 512);
  script_.Alloc(0x2000, 4096).device = 1;
  EXPECT_THAT(std::string(Make().status().message()), HasSubstr("cuda:0, cuda:1"));
  EXPECT_THAT(Make(1).value(), HasSubstr("a 1000 1\n+ 0\n"));
  EXPECT_THAT(std::string(Make(2).status().message()), HasSubstr("device 2 holds nothing"));
}

}  // namespace
}  // namespace gmt::interop
