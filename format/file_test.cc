// Tests recordings on a real disk and their use by other programs.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "format/byte_source.h"
#include "format/definitions_builder.h"
#include "format/testing/recording_fixture.h"
#include "proto/gmt.pb.h"

namespace gmt::format {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

namespace fs = std::filesystem;

class FileTest : public RecordingFixture {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("gmt_file_test." + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  void Put(const std::string& name, const std::string& bytes) {
    std::ofstream(Path(name), std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  // Returns the output of protoc for a file.
  std::string Decode(const std::string& name) {
    const std::string command = std::string(GMT_PROTOC) +
                                " --decode gmt.File -I" GMT_SOURCE_DIR " " GMT_SOURCE_DIR
                                "/proto/gmt.proto < " +
                                Path(name) + " 2>&1";
    std::FILE* pipe = popen(command.c_str(), "r");
    std::string text;
    std::array<char, 4096> buffer;
    for (size_t got; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
      text.append(buffer.data(), got);
    EXPECT_EQ(pclose(pipe), 0) << text;
    return text;
  }

  fs::path folder_;
};

TEST_F(FileTest, RecordingOnDiskIsReadBack) {
  Put("a.gmt", SmallRecording(2));
  auto reader = RecordingReader::Open(Path("a.gmt"));
  ASSERT_TRUE(reader.ok()) << reader.status();
  Collected collected;
  ASSERT_TRUE((*reader)->Read(collected).ok());
  EXPECT_THAT(collected.events, SizeIs(4));
  EXPECT_EQ((*reader)->bytes(), bytes_.size());
}

TEST_F(FileTest, ExistingFileIsNotOverwrittenByDefault) {
  Put("a.gmt", "precious");
  const auto sink = FileSink(Path("a.gmt"), IfExists::kFail);
  EXPECT_THAT(std::string(sink.status().message()), HasSubstr("a.gmt exists already"));
}

TEST_F(FileTest, ExistingFileIsOverwrittenOnRequest) {
  Put("a.gmt", "old");
  ASSERT_TRUE((*FileSink(Path("a.gmt"), IfExists::kOverwrite))->Append("new").ok());
  EXPECT_EQ(fs::file_size(Path("a.gmt")), 3u);
}

TEST_F(FileTest, DirectoryIsNotARecording) {
  EXPECT_FALSE(RecordingReader::Open(folder_.string()).ok());
}

TEST_F(FileTest, PipeOfAnotherFormatIsReadOnlyUpToItsHead) {
  const std::string pipe = Path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string head;
  // Writes as long as there is a reader.
  std::thread feeder([&] {
    const int fd = open(pipe.c_str(), O_WRONLY);
    const std::string zeros(1 << 16, '\0');
    while (write(fd, zeros.data(), zeros.size()) > 0) {
    }
    close(fd);
  });
  std::signal(SIGPIPE, SIG_IGN);
  const auto source = OpenFile(pipe, [&](absl::string_view bytes) {
    head = std::string(bytes);
    return absl::InvalidArgumentError("unknown format");
  });
  feeder.join();
  EXPECT_EQ(source.status(), absl::InvalidArgumentError("unknown format"));
  EXPECT_EQ(head.size(), kFileHeadBytes);
}

TEST_F(FileTest, PipeIsReadToItsEndIfItsHeadIsAccepted) {
  const std::string pipe = Path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string bytes(3 << 20, 'x');
  std::thread feeder([&] { std::ofstream(pipe, std::ios::binary) << bytes; });
  const auto source = OpenFile(pipe, [](absl::string_view) { return absl::OkStatus(); });
  feeder.join();
  ASSERT_TRUE(source.ok()) << source.status();
  std::string read;
  ASSERT_TRUE((*source)->Read(0, (*source)->size(), &read).ok());
  EXPECT_EQ(read, bytes);
}

TEST_F(FileTest, FullDiskIsAPersistentError) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small = {4096, before.rlim_max};
  auto sink = FileSink(Path("a.gmt"), IfExists::kFail);
  WriterOptions options;
  options.compress = false;
  options.chunk_events = 10;
  auto writer = RecordingWriter::Create(*std::move(sink), Header(), options);
  ASSERT_TRUE(writer.ok());
  setrlimit(RLIMIT_FSIZE, &small);
  absl::Status status;
  for (int n = 0; n < 10'000 && status.ok(); ++n) {
    Event event;
    event.kind = MARK;
    event.index = static_cast<uint64_t>(n) * 977;
    status = (*writer)->Add(event);
  }
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ((*writer)->Finish(), status);
  // Data flushed before is intact.
  auto reader = RecordingReader::Open(Path("a.gmt"));
  Collected collected;
  ASSERT_TRUE((*reader)->Read(collected).ok());
  EXPECT_GT(collected.events.size(), 10u);
}

TEST_F(FileTest, ProtocDecodesEventsOfAnUncompressedFile) {
  WriterOptions options;
  options.compress = false;
  Put("none.gmt", SmallRecording(2, options));
  const std::string text = Decode("none.gmt");
  EXPECT_THAT(text, HasSubstr("strings: \"driver\""));
  EXPECT_THAT(text, HasSubstr("acquisitions {"));
  EXPECT_THAT(text, HasSubstr("end_magic:"));
}

TEST_F(FileTest, ProtocDecodesTheChunksOfACompressedFile) {
  StartRecording();
  for (int n = 0; n < 1000; ++n)
    Add(Alloc(0x1000 + static_cast<uint64_t>(n) * 512, n % 3 == 0 ? 512 : 1024));
  Finish();
  Put("zstd.gmt", bytes_);
  const std::string text = Decode("zstd.gmt");
  EXPECT_THAT(text, HasSubstr("codec: ZSTD"));
  EXPECT_THAT(text, Not(HasSubstr("acquisitions {")));
}

TEST_F(FileTest, ProtocDecodesJoinedFilesAsOne) {
  SmallRecording(1);
  SmallRecording(1);
  Put("joined.gmt", bytes_);
  const std::string text = Decode("joined.gmt");
  const size_t first = text.find("header {");
  EXPECT_NE(text.find("header {", first + 1), std::string::npos);
}

}  // namespace
}  // namespace gmt::format
