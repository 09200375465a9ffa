// Runs `gpumemtrace ledger` as a program.

#include <gmock/gmock.h>

#include "cli/testing/program_fixture.h"

namespace gmt::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kLedgerLog[] =
    R"({"kind":"header","schema":"gpumemtrace.events/1","start_unix_ns":1,"devices":[{"index":0,"name":"H100","total_bytes":85899345920}]}
{"kind":"alloc","t_ns":12,"heap":"driver","memory":"device","device":0,"address":4096,"size":20971520}
{"kind":"alloc","t_ns":13,"heap":"pytorch","memory":"block","device":0,"address":4096,"size":1048576}
{"kind":"sample","t_ns":14,"device":0,"used_bytes":104857600,"total_bytes":85899345920,"source":"cudaMemGetInfo"}
{"kind":"free","t_ns":99,"heap":"pytorch","memory":"block","device":0,"address":4096}
)";

class LedgerProgramTest : public ProgramFixture {
 protected:
  void SetUp() override {
    ProgramFixture::SetUp();
    Put("log.jsonl", kLedgerLog);
  }
};

TEST_F(LedgerProgramTest, ReadsAnEventLog) {
  EXPECT_EQ(Run("ledger log.jsonl"), 0) << err_;
  EXPECT_THAT(out_, StartsWith("GPU 0 uses 100 MiB: 1.00 MiB live, 19.0 MiB unused, 80.0 MiB "
                               "contexts and others; all explained\n"));
}

TEST_F(LedgerProgramTest, AtSelectsTheMoment) {
  EXPECT_EQ(RunJson("ledger --json --at end log.jsonl")["rows"][0]["name"], "cached");
  EXPECT_EQ(RunJson("ledger --json log.jsonl")["rows"][0]["name"], "live blocks");
}

TEST_F(LedgerProgramTest, ReportsWrongUsage) {
  EXPECT_EQ(Run("ledger"), 2);
  EXPECT_EQ(Run("ledger --at noon log.jsonl"), 2);
  EXPECT_THAT(err_, HasSubstr("--at: 'noon' names no moment"));
  EXPECT_EQ(Run("ledger --top -3 log.jsonl"), 2);
}

TEST_F(LedgerProgramTest, ErrorsNameTheCause) {
  EXPECT_EQ(Run("ledger log.jsonl --device 3"), 1);
  EXPECT_THAT(err_, HasSubstr("log.jsonl: the recording has no GPU 3; it has: 0"));
  EXPECT_EQ(Run("ledger nothing.gmt"), 1);
  EXPECT_EQ(Run("ledger 999999999"), 1);
  EXPECT_THAT(err_, HasSubstr("has no session. To see all sessions: gpumemtrace list"));
}

}  // namespace
}  // namespace gmt::cli
