#include "interop/foreign_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "interop/open_input.h"

namespace gmt::interop {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ForeignInputTest : public ::testing::Test {
 protected:
  ForeignInputTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("gmt_foreign." + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~ForeignInputTest() override { std::filesystem::remove_all(folder_); }

  // Returns OpenInput's error for a file with that name and content.
  std::string Problem(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return ProblemOf(path);
  }
  static std::string ProblemOf(const std::string& path) {
    const auto input = OpenInput(path);
    return input.ok() ? "it was opened" : std::string(input.status().message());
  }

  std::filesystem::path folder_;
};

TEST_F(ForeignInputTest, MessageSaysWhatItIsWhatWasExpectedAndWhatToRun) {
  const std::string zip("PK\x03\x04", 4);
  const struct {
    std::string name, bytes, what;
  } cases[] = {
      {"a.png", std::string("\x89PNG\r\n\x1a\n\0\0", 10), "is a picture (PNG);"},
      {"a.pdf", "%PDF-1.7", "is a PDF document;"},
      {"a.pt", zip + std::string(26, '\0') + "model/data.pkl", "is a checkpoint (torch.save)"},
      {"old.pt",
       std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.",
                   21),
       "is a checkpoint (torch.save)"},
      {"a.zip", zip + std::string(40, 'x'), "is a zip archive;"},
      {"a.nsys-rep", "whatever", "is a report of Nsight Systems;"},
      {"a.sqlite", std::string("SQLite format 3\0....", 20), "is a database (SQLite)"},
      {"a.json", "{\"schemaVersion\": 1,\n\"traceEvents\": []}",
       "is a trace of operators and kernels"},
      {"b.json", "{\"loss\": 1}", "is JSON, but not an event log"},
      {"a.html", "<!DOCTYPE html>\n<html>", "is a page (HTML);"},
      {"a.so",
       std::string("\x7f"
                   "ELF\x02\x01\x01\0",
                   8),
       "is a program or library (ELF);"},
      {"a.txt", "Dear diary,\n", "is text;"},
      {"a.bin", std::string("\x01\x02\x03\x04", 4), "is a file of unknown format;"},
  };
  for (const auto& one : cases) {
    const std::string problem = Problem(one.name, one.bytes);
    EXPECT_THAT(problem, StartsWith((folder_ / one.name).string() + " ")) << one.name;
    EXPECT_THAT(problem, HasSubstr(one.what)) << one.name;
    EXPECT_THAT(problem, HasSubstr("; expected a recording (.gmt)")) << one.name;
  }
}

TEST_F(ForeignInputTest, CompressedTraceIsRecognised) {
  // gzip of {"traceEvents": []}
  const unsigned char packed[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xff,
                                  0xab, 0x56, 0x2a, 0x29, 0x4a, 0x4c, 0x4e, 0x75, 0x2d, 0x4b,
                                  0xcd, 0x2b, 0x29, 0x56, 0xb2, 0x52, 0x88, 0x8e, 0xad, 0x05,
                                  0x00, 0xd7, 0xde, 0x51, 0xaf, 0x13, 0x00, 0x00, 0x00};
  EXPECT_THAT(
      Problem("trace.json.gz", std::string(reinterpret_cast<const char*>(packed), sizeof(packed))),
      HasSubstr("is a trace of operators and kernels"));
}

TEST_F(ForeignInputTest, OtherPickleKeepsItsOwnMessage) {
  EXPECT_THAT(Problem("state.pkl", std::string("\x80\x02}q\x00.", 6)),
              HasSubstr("is not a memory snapshot of PyTorch"));
}

TEST_F(ForeignInputTest, FolderListsItsRecordings) {
  EXPECT_THAT(ProblemOf(folder_), HasSubstr("is a folder, with no recording in it; expected"));
  for (const char* name : {"b.gmt", "a.gmt", "c.txt", "d.pickle", "e.gmt"})
    std::ofstream(folder_ / name) << "x";
  EXPECT_THAT(ProblemOf(folder_),
              EndsWith("is a folder; name a file in it: a.gmt, b.gmt, d.pickle, ..."));
}

TEST_F(ForeignInputTest, MissingFileShowsHowToRecordIt) {
  const std::string path = folder_ / "run.gmt";
  EXPECT_EQ(ProblemOf(path), "there is no file " + path + ". Record it with: gpumemtrace run -o " +
                                 path + " -- COMMAND");
}

TEST_F(ForeignInputTest, EmptyFileIsReported) {
  EXPECT_THAT(Problem("a.gmt", ""), AllOf(HasSubstr("is empty: nothing was recorded")));
}

}  // namespace
}  // namespace gmt::interop
