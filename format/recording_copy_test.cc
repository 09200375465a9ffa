#include "format/recording_copy.h"

#include <gmock/gmock.h>

#include "format/definitions_builder.h"
#include "format/testing/recording_fixture.h"
#include "proto/gmt.pb.h"

namespace gmt::format {
namespace {

using testing::HasSubstr;

class RecordingCopyTest : public RecordingFixture {
 protected:
  // Creates a recording with a native frame named "old" and two allocations.
  void SetUp() override {
    StartRecording();
    FrameInfo frame;
    ModuleInfo module;
    module.path = "/lib/a.so";
    frame.module = writer_->definitions().AddModule(module);
    frame.address = 0x10;
    frame_ = writer_->definitions().InternFrame(frame);
    Add(Alloc(0x1000, 512));
    Symbols symbols;
    symbols.set_count(1);
    symbols.add_frame(frame_);
    symbols.add_function(writer_->definitions().InternString("old"));
    ASSERT_TRUE(writer_->Add(symbols).ok());
    Add(Alloc(0x2000, 512));
    Finish();
  }

  // Returns a new name for the frame, with ids of the segment.
  static std::vector<gmt::Body> Name(const Definitions& definitions, uint32_t frame) {
    std::vector<gmt::Body> bodies(2);
    const uint32_t string = definitions.string_count() - definitions.base().string + 1;
    bodies[0].mutable_definitions()->set_first_string(string);
    bodies[0].mutable_definitions()->add_strings("new");
    Symbols& symbols = *bodies[1].mutable_symbols();
    symbols.set_count(1);
    symbols.add_frame(frame);
    symbols.add_function(string);
    return bodies;
  }
  // Returns the copy with the frame renamed, or "" if copying failed.
  std::string Copy(const std::string& bytes) {
    std::string copy;
    status_ =
        CopyRecording(*BytesInMemory(bytes), "a.gmt", std::make_unique<StringSink>(&copy),
                      [&](const Definitions& definitions) {
                        return absl::StatusOr<std::vector<gmt::Body>>(Name(definitions, frame_));
                      });
    return status_.ok() ? copy : "";
  }
  std::vector<std::string> NamesIn(const std::string& bytes) {
    Read(bytes);
    EXPECT_TRUE(reader_->complete());
    std::vector<std::string> names;
    const Definitions& definitions = reader_->definitions();
    for (uint32_t id = 1; id <= definitions.frame_count(); ++id) {
      for (const Symbol& symbol : definitions.symbols(id)) {
        names.emplace_back(definitions.string(symbol.function));
      }
    }
    return names;
  }

  uint32_t frame_ = 0;
  absl::Status status_;
};

TEST_F(RecordingCopyTest, AdditionReplacesOnlyTheName) {
  EXPECT_THAT(NamesIn(bytes_), testing::ElementsAre("old"));
  const std::string copy = Copy(bytes_);
  EXPECT_THAT(NamesIn(copy), testing::ElementsAre("new"));
  const size_t index = bytes_.rfind("GMTINDEX") - 4;
  EXPECT_EQ(copy.substr(0, index), bytes_.substr(0, index));
  EXPECT_EQ(Read(copy).events.size(), 2u);
}

TEST_F(RecordingCopyTest, CopyOfACopyCanBeAddedTo) {
  EXPECT_THAT(NamesIn(Copy(Copy(bytes_))), testing::ElementsAre("new"));
}

TEST_F(RecordingCopyTest, EverySegmentIsAddedTo) {
  EXPECT_THAT(NamesIn(Copy(bytes_ + bytes_)), testing::ElementsAre("new", "new"));
}

TEST_F(RecordingCopyTest, NothingToAddIsAnExactCopy) {
  std::string copy;
  ASSERT_TRUE(CopyRecording(*BytesInMemory(bytes_), "a.gmt", std::make_unique<StringSink>(&copy),
                            [](const Definitions&) {
                              return absl::StatusOr<std::vector<gmt::Body>>(
                                  std::vector<gmt::Body>());
                            })
                  .ok());
  EXPECT_EQ(copy, bytes_);
}

TEST_F(RecordingCopyTest, StrippedCopyIsCompleteAndLacksOnlyThePaths) {
  const auto strip = [this](const std::string& bytes) {
    std::string copy;
    status_ = CopyStripped(*BytesInMemory(bytes), "a.gmt", std::make_unique<StringSink>(&copy),
                           {true, true, "/lost"});
    return copy;
  };
  bytes_.clear();
  StartRecording();
  ModuleInfo module;
  module.path = "/home/ann/libmodel.so";
  writer_->definitions().AddModule(module);
  Add(Alloc(0x1000, 512));
  Add(Role(0x1000, kRoleSaved));
  gmt::Snapshot snapshot;
  snapshot.set_name("exit");
  ASSERT_TRUE(writer_->Add(snapshot).ok());
  Finish();
  const std::string copy = strip(bytes_ + bytes_);
  ASSERT_TRUE(status_.ok()) << status_;
  const std::vector<Event> events = Read(copy).events;
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[3].roles, kRoleSaved);
  EXPECT_TRUE(reader_->complete()) << "its index has the new offsets of chunks";
  EXPECT_EQ(reader_->definitions().module(1).path, "libmodel.so");
  EXPECT_EQ(strip(copy), copy) << "nothing is left to remove";
}

TEST_F(RecordingCopyTest, CutRecordingIsRejectedWithTheRepairCommand) {
  for (size_t size = 0; size < bytes_.size(); ++size) {
    EXPECT_EQ(Copy(bytes_.substr(0, size)), "") << size;
  }
  EXPECT_THAT(std::string(status_.message()), HasSubstr("gpumemtrace repair a.gmt"));
}

TEST_F(RecordingCopyTest, EveryFlippedBitIsRejected) {
  for (size_t at = 0; at < bytes_.size(); ++at) {
    std::string damaged = bytes_;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    EXPECT_EQ(Copy(damaged), "") << at;
  }
}

TEST_F(RecordingCopyTest, DataAfterTheEndIsRejected) {
  EXPECT_EQ(Copy(bytes_ + "more"), "");
  EXPECT_EQ(Copy(bytes_ + bytes_.substr(0, 40)), "");
}

}  // namespace
}  // namespace gmt::format
