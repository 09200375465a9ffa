#include "format/parts.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "format/definitions_builder.h"
#include "format/recording_copy.h"
#include "format/testing/parts_fixture.h"
#include "format/testing/recording_fixture.h"

namespace gmt::format {
namespace {

struct WithAggregates : Collected {
  absl::Status OnAggregates(const Aggregates& value) override {
    aggregates.push_back(value);
    return absl::OkStatus();
  }
  std::vector<Aggregates> aggregates;
};

class PartsTest : public RecordingFixture {
 protected:
  PartsTest() {
    char directory[] = "/tmp/gmt-parts-XXXXXX";
    directory_ = mkdtemp(directory);
  }
  ~PartsTest() override { std::filesystem::remove_all(directory_); }

  std::string Path() const { return directory_ + "/run.gmt"; }
  void Begin(WriterOptions options = {}) {
    options.parts = true;
    auto writer = RecordingWriter::Create(NewFile(Path()), PartHeader(0), options);
    ASSERT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
  }
  void NextPart(uint32_t part) {
    std::filesystem::rename(Path(), PartPath(Path(), part - 1));
    ASSERT_TRUE(writer_->BeginPart(NewFile(Path()), PartHeader(part)).ok());
    Aggregates before;
    before.set_t_ns(now_);
    before.mutable_sites()->set_count(1);
    before.mutable_sites()->add_stack(stack_);
    ASSERT_TRUE(writer_->Add(before).ok());
  }
  Event AllocWithStack(uint64_t address, const std::string& function) {
    DefinitionsBuilder& definitions = writer_->definitions();
    FrameInfo frame;
    frame.function = definitions.InternString(function);
    Event event = Alloc(address, 256);
    event.stack = stack_ = definitions.InternStack(std::vector{definitions.InternFrame(frame)}, 0);
    return event;
  }
  WithAggregates ReadFile(const std::string& path) {
    WithAggregates collected;
    auto reader = RecordingReader::Open(path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    reader_ = *std::move(reader);
    EXPECT_TRUE(reader_->Read(collected).ok());
    return collected;
  }
  std::string FunctionOf(uint32_t stack) const {
    const Definitions& definitions = reader_->definitions();
    return std::string(
        definitions.string(definitions.frame(definitions.StackFrames(stack).at(0)).function));
  }

  std::string directory_;
  uint32_t stack_ = 0;
};

TEST_F(PartsTest, OlderPartsHaveNumberedNames) {
  EXPECT_EQ(PartPath("out/run.gmt", 3), "out/run.part-000003.gmt");
  EXPECT_EQ(PartPath("out.d/run", 12), "out.d/run.part-000012");
  EXPECT_EQ(PartPath("/tmp/.gmt", 0), "/tmp/.gmt.part-000000");
}

TEST(PartNameTest, RecordingIsFoundByTheNameOfItsPart) {
  for (const char* path : {"out/run.gmt", "out.d/run", "/tmp/.gmt"})
    EXPECT_EQ(RecordingOfPart(PartPath(path, 12)), path);
  for (const char* path : {"out/run.gmt", "run.part-3.gmt", "run.part-000003x.gmt",
                           "run.part-000003.d/run.gmt", "run.part-.gmt", ""})
    EXPECT_EQ(RecordingOfPart(path), std::nullopt) << path;
}

TEST_F(PartsTest, PartsAreReadAsOneRecordingUnderTheNewestName) {
  Begin();
  Add(AllocWithStack(0x100, "forward"));
  Add(AllocWithStack(0x200, "backward"));
  NextPart(1);
  Add(Free(0x100));
  Add(AllocWithStack(0x300, "forward"));
  NextPart(2);
  Add(Free(0x300));
  Finish();

  const auto all = ReadFile(Path());
  EXPECT_TRUE(reader_->complete());
  EXPECT_EQ(all.headers.size(), 3u);
  ASSERT_EQ(all.events.size(), 5u);
  EXPECT_EQ(all.events[2].address, 0x100u);
  EXPECT_EQ(all.events[4].address, 0x300u);
  EXPECT_EQ(all.events[0].stack, all.events[3].stack) << "a stack has the same id in all parts";
  EXPECT_EQ(FunctionOf(all.events[3].stack), "forward");
  ASSERT_EQ(all.aggregates.size(), 2u);
  EXPECT_EQ(FunctionOf(all.aggregates[0].sites().stack(0)), "backward");
}

TEST_F(PartsTest, EachPartCanBeReadAlone) {
  Begin();
  Add(AllocWithStack(0x100, "forward"));
  gmt::Symbols names;
  names.set_count(1);
  names.add_frame(1);
  names.add_function(writer_->definitions().InternString("named"));
  ASSERT_TRUE(writer_->Add(names).ok());
  NextPart(1);
  Add(AllocWithStack(0x300, "forward"));
  Finish();
  std::filesystem::remove(PartPath(Path(), 0));
  const auto alone = ReadFile(Path());
  EXPECT_TRUE(reader_->complete());
  EXPECT_EQ(reader_->header().part(), 1u);
  ASSERT_EQ(alone.events.size(), 1u);
  EXPECT_EQ(FunctionOf(alone.events[0].stack), "forward");
  EXPECT_EQ(reader_->definitions().string(reader_->definitions().symbols(1).at(0).function),
            "named");
}

TEST_F(PartsTest, CopyWithoutPathsHasAllOfThemInOneFile) {
  Begin();
  Add(AllocWithStack(0x100, "forward"));
  NextPart(1);
  Add(Free(0x100));
  Add(AllocWithStack(0x300, "forward"));
  Finish();
  const std::string copy = directory_ + "/given.gmt";
  const absl::Status status =
      CopyStripped(**OpenWithParts(Path()), Path(), NewFile(copy), {true, true, "/lost"});
  ASSERT_TRUE(status.ok()) << status;
  const auto all = ReadFile(copy);
  EXPECT_TRUE(reader_->complete());
  ASSERT_EQ(all.events.size(), 3u);
  EXPECT_EQ(all.events[0].address, 0x100u);
  EXPECT_EQ(FunctionOf(all.events[2].stack), "forward");
}

TEST_F(PartsTest, PartsBeforeAHoleAreOmitted) {
  Begin();
  for (uint32_t part = 1; part <= 3; ++part) {
    Add(Alloc(0x100 * part, 8));
    NextPart(part);
  }
  Finish();
  std::filesystem::remove(PartPath(Path(), 1));
  const auto rest = ReadFile(Path());
  EXPECT_EQ(rest.events.size(), 1u);
  EXPECT_EQ(reader_->header().part(), 2u);
}

TEST_F(PartsTest, FileOfAnotherRecordingWithThePartsNameIsIgnored) {
  Begin();
  Add(Alloc(0x100, 8));
  NextPart(1);
  Finish();
  std::filesystem::remove(PartPath(Path(), 0));
  Header other = PartHeader(0);
  other.set_start_monotonic_ns(78);
  ASSERT_TRUE((*RecordingWriter::Create(NewFile(PartPath(Path(), 0)), other, {}))->Finish().ok());
  EXPECT_EQ(ReadFile(Path()).headers.size(), 1u);
}

TEST_F(PartsTest, ReadsAnyBytesAcrossPartBoundaries) {
  Begin();
  Add(Alloc(0x100, 8));
  NextPart(1);
  Finish();
  auto joined = OpenWithParts(Path());
  ASSERT_TRUE(joined.ok());
  std::string whole, piece;
  ASSERT_TRUE((*joined)->Read(0, (*joined)->size(), &whole).ok());
  ASSERT_EQ(whole.size(), (*joined)->size());
  for (uint64_t from = 0; from < whole.size(); from += 7) {
    ASSERT_TRUE((*joined)->Read(from, 50, &piece).ok());
    ASSERT_EQ(piece, whole.substr(from, 50));
  }
}

TEST_F(PartsTest, NothingIsReadAfterATruncatedPart) {
  Begin();
  Add(Alloc(0x100, 8));
  NextPart(1);
  Finish();
  auto source = OpenWithParts(Path());
  ASSERT_TRUE(source.ok()) << source.status();
  std::filesystem::resize_file(PartPath(Path(), 0), 50);
  std::string read;
  ASSERT_TRUE((*source)->Read(40, (*source)->size() - 40, &read).ok());
  EXPECT_EQ(read.size(), 10);
}

TEST_F(PartsTest, PartReadFromAPipeIsReadAlone) {
  Begin();
  NextPart(1);
  Add(Alloc(0x100, 8));
  Finish();
  const std::string pipe = directory_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread feeder([&] {
    std::ofstream(pipe, std::ios::binary) << std::ifstream(Path(), std::ios::binary).rdbuf();
  });
  const auto source = OpenWithParts(pipe);
  feeder.join();
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->size(), std::filesystem::file_size(Path()));
}

TEST_F(PartsTest, DefinitionsOfManyFlushesAreRepeatedInFewChunks) {
  Begin();
  for (uint64_t n = 0; n < 200; ++n) {
    Add(AllocWithStack(0x100 + n, "f" + std::to_string(n % 50)));
    Flush();
  }
  NextPart(1);
  Finish();
  std::filesystem::remove(PartPath(Path(), 0));
  ReadFile(Path());
  EXPECT_LE(reader_->chunks(), 3u);
  EXPECT_EQ(FunctionOf(50), "f49");
}

}  // namespace
}  // namespace gmt::format
