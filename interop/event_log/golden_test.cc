// tests/golden: recordings of every version of the file format, with their printed form. Every
// later version must read them. v1.gmt has every kind of chunk. It and v1-roles.gmt, whose kinds
// and keys came later, have every kind of event with every key. v2.gmt and v2-roles.gmt are the
// same events in version 2. A new version gets its own files; existing files are never rewritten.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "format/byte_source.h"
#include "format/chunk_codec.h"
#include "format/definitions_builder.h"
#include "format/frame_stream.h"
#include "format/testing/recording_fixture.h"
#include "interop/event_log/event_log.h"
#include "interop/event_log/writer_target.h"
#include "interop/torch_import/torch_import.h"

namespace gmt::interop {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kFolder = std::string(GMT_SOURCE_DIR) + "/tests/golden/";

std::string BytesOf(const std::string& name) {
  std::ifstream in(kFolder + name, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Reads and prints a recording, in which nothing may be damaged.
std::vector<std::string> Print(const std::string& recording) {
  std::vector<std::string> lines;
  format::Collected all;
  auto first = format::RecordingReader::FromBytes(recording, "golden");
  EXPECT_TRUE(first.ok()) << first.status();
  if (!first.ok()) return lines;
  EXPECT_TRUE((*first)->Read(all).ok());
  EXPECT_TRUE((*first)->complete());
  EXPECT_THAT((*first)->damage(), IsEmpty());
  EventLogWriter writer(&(*first)->definitions(), [&](absl::string_view line) {
    lines.emplace_back(line);
    return absl::OkStatus();
  });
  auto second = format::RecordingReader::FromBytes(recording, "golden");
  EXPECT_TRUE((*second)->Read(writer, format::Returns::kAsRecorded).ok());
  EXPECT_TRUE(writer.End().ok());
  return lines;
}

TEST(GoldenTest, RecordingsOfEveryVersionPrintUnchanged) {
  for (const std::string name : {"v1", "v1-roles", "v2", "v2-roles"}) {
    SCOPED_TRACE(name);
    const std::vector<std::string> expected = LinesOf(BytesOf("v1" + name.substr(2) + ".jsonl"));
    ASSERT_THAT(expected, SizeIs(testing::Gt(14u)));
    const std::vector<std::string> printed = Print(BytesOf(name + ".gmt"));
    ASSERT_THAT(printed, SizeIs(expected.size()));
    for (size_t at = 0; at < expected.size(); ++at) {
      EXPECT_EQ(nlohmann::json::parse(printed[at]), nlohmann::json::parse(expected[at]));
    }
  }
}

TEST(GoldenTest, Version1RecordingsHaveEveryKindOfEvent) {
  format::Collected all;
  for (const std::string name : {"v1", "v1-roles"}) {
    auto reader = format::RecordingReader::FromBytes(BytesOf(name + ".gmt"), name);
    ASSERT_TRUE(reader.ok() && (*reader)->Read(all).ok());
  }
  std::set<int> kinds;
  for (const format::Event& event : all.events) kinds.insert(event.kind);
  for (int kind = Events::KIND_UNSPECIFIED + 1; kind <= Events::Kind_MAX; ++kind) {
    if (!Events::Kind_IsValid(kind) || kind == Events::STACK_LINE) continue;
    EXPECT_THAT(kinds, Contains(kind)) << Events::Kind_Name(static_cast<Events::Kind>(kind));
  }
}

TEST(GoldenTest, Version1RecordingHasEveryKindOfChunkAndBothCodecs) {
  const auto source = format::BytesInMemory(BytesOf("v1.gmt"));
  format::FrameStream frames(source.get());
  std::set<int> kinds, codecs;
  for (;;) {
    const auto frame = frames.Next();
    ASSERT_TRUE(frame.ok());
    if (frame->kind == format::FrameRecord::Kind::kEnd) break;
    Chunk chunk;
    if (frame->kind != format::FrameRecord::Kind::kChunk) continue;
    ASSERT_TRUE(chunk.ParseFromArray(frame->body.data(), static_cast<int>(frame->body.size())));
    kinds.insert(chunk.kind());
    codecs.insert(chunk.codec());
  }
  for (const Chunk::Kind kind : {Chunk::DEFINITIONS, Chunk::EVENTS, Chunk::SNAPSHOT, Chunk::FACTS,
                                 Chunk::SYMBOLS, Chunk::LOSSES}) {
    EXPECT_THAT(kinds, Contains(static_cast<int>(kind))) << Chunk::Kind_Name(kind);
  }
  EXPECT_THAT(codecs, Contains(static_cast<int>(Chunk::NONE)));
  EXPECT_THAT(codecs, Contains(static_cast<int>(Chunk::ZSTD)));
}

// Snapshots of PyTorch in every layout that needs its own code, and the recordings of their import.
TEST(GoldenTest, PyTorchSnapshotsPrintUnchanged) {
  for (const char* name : {"torch-1.13", "torch-2.0", "torch-2.11"}) {
    SCOPED_TRACE(name);
    auto snapshot =
        TorchImport::Open(format::BytesInMemory(BytesOf(std::string(name) + ".pickle")), name);
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    std::string recording;
    auto writer = format::RecordingWriter::Create(std::make_unique<format::StringSink>(&recording),
                                                  (*snapshot)->header(), {});
    ASSERT_TRUE(writer.ok());
    WriterTarget target(writer->get());
    ASSERT_TRUE((*snapshot)->Read((*writer)->definitions(), target).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
    const std::vector<std::string> printed = Print(recording);
    const std::vector<std::string> expected = LinesOf(BytesOf(std::string(name) + ".jsonl"));
    ASSERT_THAT(printed, SizeIs(expected.size()));
    for (size_t at = 0; at < expected.size(); ++at) {
      EXPECT_EQ(nlohmann::json::parse(printed[at]), nlohmann::json::parse(expected[at]));
    }
  }
}

// Returns whether a reader accepts the bytes as a complete recording.
bool ReadsAsWhole(const std::string& bytes) {
  format::Collected all;
  auto reader = format::RecordingReader::FromBytes(bytes, "golden");
  return reader.ok() && (*reader)->Read(all).ok() && (*reader)->complete();
}

TEST(GoldenTest, EverySingleBitFlipIsDetectedInEveryKindOfChunk) {
  std::string bytes = BytesOf("v1.gmt");
  ASSERT_TRUE(ReadsAsWhole(bytes));
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto flip = static_cast<char>(1 << (bit % 8));
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
    EXPECT_FALSE(ReadsAsWhole(bytes)) << "bit " << bit;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
  }
}

TEST(GoldenTest, EveryTruncationIsDetectedInEveryKindOfChunk) {
  const std::string bytes = BytesOf("v1.gmt");
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ReadsAsWhole(bytes.substr(0, size))) << "cut at " << size;
  }
}

}  // namespace
}  // namespace gmt::interop
