// `info` counts events without reading them if it can. What it prints must not depend on that.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/testing/program_fixture.h"
#include "format/testing/older_recording.h"

namespace gmt::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kTraining[] =
    R"({"kind":"header","schema":"gpumemtrace.events/1","start_unix_ns":1,"pid":7,"argv":["python","train.py"]}
{"kind":"alloc","t_ns":12,"heap":"driver","memory":"device","device":0,"address":4096,"size":2097152,"thread":11,"api":"cudaMalloc"}
{"kind":"alloc","t_ns":20,"heap":"pytorch","memory":"block","device":0,"address":4096,"size":512}
{"kind":"role","t_ns":21,"heap":"pytorch","device":0,"address":4096,"role":["saved"]}
{"kind":"free","t_ns":30,"heap":"pytorch","memory":"block","device":0,"address":4096}
{"kind":"free","t_ns":99,"heap":"driver","device":0,"address":4096,"thread":11,"api":"cudaFree"}
{"kind":"free_done","t_ns":100,"heap":"driver","device":0,"address":4096,"result":1}
{"kind":"alloc_failed","t_ns":101,"heap":"driver","size":99,"result":2}
{"kind":"gap","t_ns":103,"from":103,"to":110,"events":4,"reason":"overrun"}
{"kind":"mark","t_ns":120,"name":"step","index":1}
{"kind":"losses","written":20,"delivered":16,"overrun":4}
{"kind":"live_set","name":"exit","reason":"exit","t_ns":125,"exact":true,"live":[{"kind":"alloc","heap":"driver","memory":"device","device":0,"address":4096,"size":2097152}]}
)";
constexpr char kWitnessed[] =
    R"({"kind":"alloc","t_ns":12,"heap":"driver","memory":"device","device":0,"address":4096,"size":512,"thread":11,"api":"cudaMalloc"}
{"kind":"witness","t_ns":12,"action":"alloc","object":4096,"value":512,"memory":"device","device":0}
{"kind":"witness","t_ns":14,"action":"alloc","object":8192,"value":64,"memory":"device","device":0}
)";

class InfoProgramTest : public ProgramFixture {
 protected:
  std::string Recording(const std::string& log) {
    Put("log.jsonl", log);
    EXPECT_EQ(Run("import log.jsonl -o run.gmt --force"), 0) << err_;
    return Get("run.gmt");
  }
  // What `info` prints about a file of these bytes.
  std::vector<std::string> Answers(const std::string& bytes) {
    Put("run.gmt", bytes);
    std::vector<std::string> answers;
    for (const char* form : {"", " --json"}) {
      answers.push_back(std::to_string(Run(std::string("info run.gmt") + form)));
      answers.push_back(out_);
      answers.push_back(err_);
    }
    return answers;
  }
};

TEST_F(InfoProgramTest, CountedEventsAreThoseThatWouldBeRead) {
  const std::string run = Recording(kTraining);
  const std::vector<std::string> answers = Answers(run);
  EXPECT_THAT(answers[1], HasSubstr("2 alloc, 2 free, 1 free failed, 1 alloc failed, 1 role"));
  EXPECT_THAT(answers[1], HasSubstr("pytorch (1 allocation, 1 free)"));
  EXPECT_EQ(answers, Answers(format::WithoutCounts(run)));
}

TEST_F(InfoProgramTest, RecordingWithoutEventsIsTheSameEitherWay) {
  const std::string run = Recording("{\"kind\":\"header\",\"schema\":\"gpumemtrace.events/1\"}\n");
  EXPECT_EQ(Answers(run), Answers(format::WithoutCounts(run)));
}

TEST_F(InfoProgramTest, WhatAnImportedHistoryBeganWithIsInTheFirstLine) {
  constexpr char kBegin[] =
      R"({"kind":"header","schema":"gpumemtrace.events/1","imported_from":"torch snapshot"}
{"kind":"live_set","name":"begin","t_ns":0,"exact":true,"live":[{"kind":"alloc","heap":"pytorch","memory":"block","device":0,"address":4096,"size":512}]}
)";
  constexpr char kHistory[] =
      R"({"kind":"alloc","t_ns":12,"heap":"pytorch","memory":"block","device":0,"address":8192,"size":512}
)";
  for (const std::string& history : {std::string(), std::string(kHistory)}) {
    EXPECT_THAT(Answers(Recording(kBegin + history))[1],
                StartsWith("run.gmt   complete; 1 allocation from before its history\n"));
  }
  EXPECT_THAT(Answers(Recording(kTraining))[1], StartsWith("run.gmt   complete\n"));
}

TEST_F(InfoProgramTest, WhatCuptiSawIsComparedWithTheEvents) {
  const std::string run = Recording(kWitnessed);
  const std::vector<std::string> answers = Answers(run);
  EXPECT_THAT(answers[1], HasSubstr("1 allocation, 0 frees also seen by CUPTI; 1 only by CUPTI"));
  EXPECT_EQ(answers, Answers(format::WithoutCounts(run)));
}

TEST_F(InfoProgramTest, JoinedRecordingsAreTheSameEitherWay) {
  const std::string first = Recording(kTraining), second = Recording(kWitnessed);
  const std::string third = Recording(kTraining);
  EXPECT_EQ(Answers(first + third), Answers(format::WithoutCounts(first) + third));
  EXPECT_EQ(Answers(first + second), Answers(first + format::WithoutCounts(second)));
}

TEST_F(InfoProgramTest, TruncatedRecordingIsTheSameEitherWay) {
  const std::string run = Recording(kTraining);
  const std::string cut = run.substr(0, run.size() - 40);
  const std::vector<std::string> answers = Answers(cut);
  EXPECT_THAT(answers[2], HasSubstr("has no end"));
  EXPECT_EQ(answers, Answers(format::WithoutCounts(cut)));
}

TEST_F(InfoProgramTest, DamageIsReportedAlthoughEventsAreNotRead) {
  std::string run = Recording(kTraining);
  run[run.find("GMTCHUNK", run.size() / 3) + 30] ^= 1;
  EXPECT_THAT(Answers(run)[2], HasSubstr("is damaged (CRC32C)"));
}

}  // namespace
}  // namespace gmt::cli
