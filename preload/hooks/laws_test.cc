// Tests the library's guarantees to the process into which it is loaded, each on a real program.

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "preload/testing/traced_program.h"

namespace gmt::preload {
namespace {

using session::Kind;
using session::Memory;
using session::Record;
using session::Space;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::string Program(const std::string& name) { return GMT_TEST_PROGRAMS "/" + name; }

// Returns the events without the initial ones, which describe the device and the context.
std::vector<Record> Calls(const LeftSession& session) {
  std::vector<Record> calls;
  for (const Record& r : session.records) {
    if (r.kind != Kind::kDevice && r.kind != Kind::kContextCreate) calls.push_back(r);
  }
  return calls;
}

std::vector<Kind> Kinds(const LeftSession& session) {
  std::vector<Kind> kinds;
  for (const Record& r : Calls(session)) kinds.push_back(r.kind);
  return kinds;
}

// Copies a library and moves its program headers to another offset in the file.
void MoveProgramHeaders(const std::string& from, const std::string& to, uint64_t offset) {
  std::filesystem::copy_file(from, to);
  std::fstream file(to, std::ios::in | std::ios::out | std::ios::binary);
  ElfW(Ehdr) elf;
  file.read(reinterpret_cast<char*>(&elf), sizeof(elf));
  std::vector<ElfW(Phdr)> headers(elf.e_phnum);
  const auto size = static_cast<std::streamsize>(headers.size() * sizeof(headers[0]));
  file.seekg(static_cast<std::streamoff>(elf.e_phoff))
      .read(reinterpret_cast<char*>(headers.data()), size);
  elf.e_phoff = offset;
  file.seekp(0).write(reinterpret_cast<const char*>(&elf), sizeof(elf));
  file.seekp(static_cast<std::streamoff>(offset))
      .write(reinterpret_cast<const char*>(headers.data()), size);
  ASSERT_TRUE(file.flush().good()) << to;
}

class LawsTest : public testing::Test {
 protected:
  TracedProgram traced_;
};

// ---- Before the first GPU call -----------------------------------------------------------------

TEST_F(LawsTest, ProcessWithoutGpuCallLeavesNothingBehind) {
  const Outcome outcome = traced_.Run({"/bin/sh", "-c", "echo hello; exit 3"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.out, "hello\n");
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(traced_.sessions(), IsEmpty());
  EXPECT_THAT(traced_.recordings(), IsEmpty());
}

TEST_F(LawsTest, ConcurrentFirstCallersAllWaitForTheSession) {
  for (int round = 0; round < 20; ++round) {
    TracedProgram traced;
    ASSERT_EQ(traced.Run({Program("first_calls"), "4", "100"}, "stacks=none").exit_code, 0);
    const LeftSession session = traced.ReadSession();
    EXPECT_THAT(Calls(session), SizeIs(400));
    EXPECT_THAT(session.live, SizeIs(400));
    EXPECT_EQ(session.counters[session::kBeforeSession], 0u);
  }
}

// ---- The target is not affected -----------------------------------------------------------------

TEST_F(LawsTest, ErrnoOutputAndExitCodeAreUnchanged) {
  const Outcome plain = traced_.RunPlain({Program("errno_kept")});
  const Outcome traced = traced_.Run({Program("errno_kept")});
  EXPECT_EQ(traced.exit_code, plain.exit_code);
  EXPECT_EQ(traced.out, plain.out);
  EXPECT_EQ(traced_.ReadSession().exit_code, 5);
}

TEST_F(LawsTest, OneLineSaysWhereTheRecordingIs) {
  const Outcome outcome = traced_.Run({Program("errno_kept")}, "output=here.gmt");
  EXPECT_THAT(outcome.err, HasSubstr("recording"));
  EXPECT_THAT(outcome.err, HasSubstr(" to " + traced_.directory() + "/here.gmt\n"));
  EXPECT_THAT(traced_.recordings(), ElementsAre("here.gmt"));
}

TEST_F(LawsTest, MissingCollectorIsReportedInsteadOfTheRecording) {
  traced_.collector = "/no/such/collector";
  const Outcome outcome = traced_.Run({Program("errno_kept")}, "quiet");
  EXPECT_THAT(outcome.err, HasSubstr("no collector (No such file or directory)"));
  EXPECT_THAT(outcome.err, HasSubstr("gpumemtrace collect " + traced_.directory()));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  EXPECT_THAT(traced_.recordings(), IsEmpty());
  EXPECT_THAT(Calls(traced_.ReadSession()), SizeIs(4));
}

TEST_F(LawsTest, CollectorThatCannotBeExecutedIsReported) {
  traced_.collector = "/etc/passwd";
  EXPECT_THAT(traced_.Run({Program("errno_kept")}).err, HasSubstr("no collector ("));
}

TEST_F(LawsTest, UnknownOptionIsReportedOnOneLine) {
  const Outcome outcome = traced_.Run({Program("errno_kept")}, "quiet,colour=red");
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_THAT(outcome.err, HasSubstr("'colour=red': unknown option\n"));
  EXPECT_THAT(traced_.sessions(), SizeIs(1));
}

TEST_F(LawsTest, UnwritablePlaceIsReplacedAndReported) {
  const Outcome outcome =
      traced_.Run({"/usr/bin/env", "XDG_STATE_HOME=" + traced_.directory(), Program("errno_kept")},
                  "output=/proc/nowhere/run.gmt");
  EXPECT_EQ(outcome.exit_code, 5);
  EXPECT_THAT(outcome.err, HasSubstr(traced_.directory() + "/gpumemtrace/run.gmt (No such file"));
}

TEST_F(LawsTest, FirstCallMayComeFromAThreadWithASmallStack) {
  EXPECT_EQ(traced_.Run({Program("small_stack")}).exit_code, 0);
  EXPECT_THAT(Calls(traced_.ReadSession()), SizeIs(1));
}

// After a library has been replaced by another, a stack is walked twice.
TEST_F(LawsTest, SmallestStackIsEnoughForLibrariesThatReplaceEachOther) {
  const std::string first = Program("libplugin.so"), second = traced_.directory() + "/other.so";
  std::filesystem::copy_file(first, second);
  EXPECT_EQ(traced_.Run({Program("small_stack"), first, second, first, second}).exit_code, 0);
  const LeftSession session = traced_.ReadSession();
  EXPECT_THAT(Calls(session), SizeIs(5));
  EXPECT_EQ(std::count(session.modules.begin(), session.modules.end(), second), 2);
}

TEST_F(LawsTest, LookupsDoNotFindMissingCuda) {
  const std::string nothing =
      "default cupti nothing\nprogram cupti nothing\ndefault nothing\nprogram nothing\nversioned "
      "nothing\nnext nothing\nerror said\n"
      "libc something\n";
  EXPECT_EQ(traced_.RunPlain({Program("no_runtime")}).out, "weak -1 -1\n" + nothing);
  // A weak reference inevitably finds the hook, which has no function to call.
  EXPECT_EQ(traced_.Run({Program("no_runtime")}).out, "weak 302 15\n" + nothing);
}

// Built as by some linkers and older tools: with only the hash table of the System V ABI.
TEST_F(LawsTest, LookupsFindARuntimeThatHasOnlyTheOldHashTable) {
  const std::vector<std::string> command = {Program("no_runtime"), GMT_OLD_HASH_RUNTIME};
  const auto lookups = [](const Outcome& o) { return o.out.substr(o.out.find('\n') + 1); };
  const std::string traced = lookups(traced_.Run(command));
  EXPECT_EQ(traced, lookups(traced_.RunPlain(command)));
  EXPECT_THAT(traced, HasSubstr("default something\n"));
}

TEST_F(LawsTest, WarmHooksAllocateNothingAndNeverEnterTheKernel) {
  const Outcome outcome = traced_.Run({Program("quiet_hooks")}, "stacks=none");
  EXPECT_EQ(outcome.exit_code, 0) << "1: malloc was called; -31 (SIGSYS): a system call was made";
}

TEST_F(LawsTest, TargetNeitherSeesNorWaitsForAChildOfOurs) {
  const Outcome outcome = traced_.Run({Program("family"), "wait"});
  EXPECT_EQ(outcome.out, "nobody\n");
  EXPECT_EQ(outcome.exit_code, 9);
}

TEST_F(LawsTest, ForkChildThatFreesItsParentsMemoryRecordsNothing) {
  const Outcome outcome = traced_.Run({Program("family"), "fork"});
  EXPECT_EQ(outcome.out, "child 3\n");
  const LeftSession session = traced_.ReadSession();
  EXPECT_THAT(Kinds(session), ElementsAre(Kind::kAlloc));
}

TEST_F(LawsTest, ForkChildThatAllocatesHasItsOwnSession) {
  const Outcome outcome = traced_.Run({Program("family"), "fork-gpu"});
  EXPECT_EQ(outcome.out, "child 4\n");
  ASSERT_THAT(traced_.sessions(), SizeIs(2));
  for (const std::string& name : traced_.sessions()) {
    EXPECT_THAT(Calls(traced_.ReadSession(name)), SizeIs(1)) << name;
  }
  EXPECT_THAT(traced_.recordings(), SizeIs(2));
}

TEST_F(LawsTest, ProcessThatExecsHasASessionForEachProgram) {
  EXPECT_EQ(traced_.Run({Program("family"), "exec"}).out, "nobody\n");
  EXPECT_THAT(traced_.sessions(), SizeIs(2));
  EXPECT_THAT(traced_.recordings(), SizeIs(2));
}

TEST_F(LawsTest, WithFollowForkOffTheChildIsNotRecorded) {
  traced_.Run({Program("family"), "fork-gpu"}, "follow_fork=off");
  EXPECT_THAT(traced_.sessions(), SizeIs(1));
}

TEST_F(LawsTest, WithFollowForkOffAChildIsNotRecordedEvenIfItUsesTheGpuFirst) {
  EXPECT_EQ(traced_.Run({Program("family"), "fork-first"}, "follow_fork=off").out, "child 4\n");
  EXPECT_THAT(traced_.sessions(), SizeIs(1));
  EXPECT_EQ(traced_.Run({Program("family"), "fork-first"}).out, "child 4\n");
  EXPECT_THAT(traced_.sessions(), SizeIs(3));
}

// ---- What is recorded --------------------------------------------------------------------------

TEST_F(LawsTest, FreePrecedesItsResultAndAFailureUndoesIt) {
  traced_.Run({Program("errno_kept")});
  EXPECT_THAT(Kinds(traced_.ReadSession()),
              ElementsAre(Kind::kAlloc, Kind::kFree, Kind::kFreeDone, Kind::kAllocFailed));
}

// The address may have a new owner before the free has returned.
TEST_F(LawsTest, FreeIsRecordedBeforeItsAddressCanBeReused) {
  ASSERT_EQ(traced_.Run({Program("frees"), "recycled"}).exit_code, 0);
  const LeftSession session = traced_.ReadSession();
  EXPECT_THAT(Kinds(session),
              ElementsAre(Kind::kAlloc, Kind::kFree, Kind::kAlloc, Kind::kFreeDone));
  ASSERT_THAT(session.live, SizeIs(1));
  EXPECT_EQ(session.live[0].live.thread, Calls(session)[2].thread);
}

TEST_F(LawsTest, MemoryWhoseFreeTheDriverRefusesStaysLive) {
  ASSERT_EQ(traced_.Run({Program("frees"), "refused"}).exit_code, 0);
  const LeftSession session = traced_.ReadSession();
  EXPECT_THAT(Kinds(session), ElementsAre(Kind::kAlloc, Kind::kFree, Kind::kFreeDone));
  ASSERT_THAT(session.live, SizeIs(1));
  EXPECT_EQ(session.live[0].live.size, Calls(session)[0].size);
}

TEST_F(LawsTest, FailedFreeLeavesTheLiveSetUnchanged) {
  ASSERT_EQ(traced_.Run({Program("quiet_hooks")}, "stacks=none,ring=4MiB").exit_code, 0);
  const LeftSession session = traced_.ReadSession();
  EXPECT_THAT(session.live, IsEmpty());
  EXPECT_EQ(session.counters[session::kLiveFull], 0u);
}

TEST_F(LawsTest, AllocationCarriesSizeDeviceThreadAndDuration) {
  traced_.Run({Program("first_calls"), "1", "1"});
  const LeftSession session = traced_.ReadSession();
  const std::vector<Record> calls = Calls(session);
  ASSERT_THAT(calls, SizeIs(1));
  const Record& r = calls[0];
  EXPECT_EQ(r.memory, Memory::kDevice);
  EXPECT_EQ(r.space, Space::kDevice);
  EXPECT_EQ(r.size, 1000003u);
  EXPECT_EQ(r.device, 3);  // reported by the null runtime's driver
  EXPECT_NE(r.thread, 0u);
  EXPECT_NE(r.thread, session.pid);
  EXPECT_GE(r.value, 0x300000000000u);
  ASSERT_THAT(session.live, SizeIs(1));
  EXPECT_EQ(session.live[0].live.size, 1000003u);
  EXPECT_EQ(r.context, 1);
  EXPECT_EQ(session.live[0].live.context, 1);
}

TEST_F(LawsTest, ContextIsRecordedWhenFirstSeen) {
  traced_.Run({Program("first_calls"), "1", "3"});
  const LeftSession session = traced_.ReadSession();
  ASSERT_THAT(session.records, SizeIs(5));
  EXPECT_EQ(session.records[1].kind, Kind::kContextCreate);
  EXPECT_EQ(session.records[1].value, 0xc0u);  // reported by the null runtime's driver
  EXPECT_EQ(session.records[1].context, 1);
  EXPECT_EQ(session.records[1].device, 3);
}

// Calls of threads that did not encounter the device first may precede both records.
TEST_F(LawsTest, DeviceIsRecordedOnceBeforeItsFirstContext) {
  traced_.Run({Program("first_calls"), "4", "3"});
  const LeftSession session = traced_.ReadSession();
  ASSERT_THAT(session.devices, SizeIs(1));
  const LeftSession::Device& device = session.devices[0];
  std::vector<Kind> facts;
  for (const Record& r : session.records) {
    if (r.kind == Kind::kDevice || r.kind == Kind::kContextCreate) facts.push_back(r.kind);
  }
  EXPECT_THAT(facts, ElementsAre(Kind::kDevice, Kind::kContextCreate));
  EXPECT_EQ(device.record.action, session::Action::kCreate);
  EXPECT_EQ(device.record.device, 3);
  EXPECT_EQ(device.name, "Null device");
  EXPECT_EQ(device.uuid, "GPU-03132333-4353-6373-8393-a3b3c3d3e3f3");
  EXPECT_EQ(device.pci_bus_id, "0000:65:00.0");
  EXPECT_EQ(device.record.size, uint64_t{80} << 30);
  EXPECT_EQ(device.record.priority, 90);
}

TEST_F(LawsTest, DeviceIsTheFirstRecordOfASingleThreadedProcess) {
  traced_.Run({Program("first_calls"), "1", "3"});
  const LeftSession session = traced_.ReadSession();
  ASSERT_THAT(session.devices, SizeIs(1));
  EXPECT_EQ(session.records[0], session.devices[0].record);
}

TEST_F(LawsTest, KilledProcessLeavesEverythingItCommitted) {
  EXPECT_EQ(traced_.Run({Program("killed")}).exit_code, -9);
  const LeftSession session = traced_.ReadSession();
  EXPECT_THAT(session.live, SizeIs(3));
  EXPECT_EQ(session.losses.written, 5u);
  EXPECT_EQ(session.losses.delivered, 5u);
}

TEST_F(LawsTest, DisabledHeapIsNotRecorded) {
  traced_.Run({Program("first_calls"), "1", "5"}, "heap=host");
  EXPECT_THAT(traced_.ReadSession().records, IsEmpty());
}

TEST_F(LawsTest, RuntimeOutsideTheGlobalScopeIsFoundByItsName) {
  const Outcome outcome =
      traced_.Run({Program("local_runtime"), GMT_NULL_RUNTIME, Program("libplugin.so")});
  EXPECT_EQ(outcome.out, "0\n");
  const LeftSession session = traced_.ReadSession();
  const std::vector<Record> calls = Calls(session);
  ASSERT_THAT(calls, SizeIs(1));
  EXPECT_EQ(calls[0].size, 424242u);
}

TEST_F(LawsTest, UnhookedPointerIsCountedEvenBeforeRecordingBegins) {
  std::vector<std::string> command = {Program("many_runtimes")};
  for (int i = 0; i < 6; ++i) {
    command.push_back(traced_.directory() + "/runtime" + std::to_string(i) + ".so");
    std::filesystem::copy_file(GMT_NULL_RUNTIME, command.back());
  }
  EXPECT_EQ(traced_.Run(command).exit_code, 0);
  const LeftSession session = traced_.ReadSession();
  EXPECT_THAT(Calls(session), SizeIs(4));
  EXPECT_EQ(session.counters[session::kPassedUnhooked], 2u);
}

// ---- Stacks ------------------------------------------------------------------------------------

class StacksTest : public testing::TestWithParam<const char*> {
 protected:
  TracedProgram traced_;
};

TEST_P(StacksTest, StackBeginsInTheProgramAndItsModulesAreNamed) {
  traced_.Run({Program("errno_kept")}, std::string("stacks=native:") + GetParam());
  const LeftSession session = traced_.ReadSession();
  ASSERT_THAT(session.stacks, Not(IsEmpty()));
  EXPECT_THAT(session.stacks[0], SizeIs(testing::Ge(3u)));  // main and its callers
  EXPECT_THAT(session.modules, testing::Contains(Program("errno_kept")));
  EXPECT_THAT(session.modules, Each(Not(HasSubstr("libgpumemtrace"))));
}

TEST_P(StacksTest, OneCallSiteHasOneStack) {
  traced_.Run({Program("first_calls"), "3", "50"}, std::string("stacks=native:") + GetParam());
  const LeftSession session = traced_.ReadSession();
  std::map<uint32_t, int> ids;
  for (const Record& r : session.records) ++ids[r.stack];
  EXPECT_THAT(ids, SizeIs(1));
  EXPECT_EQ(ids.count(0), 0u);
}

INSTANTIATE_TEST_SUITE_P(Unwinders, StacksTest, testing::Values("libunwind", "libgcc"));

// Tools that rewrite libraries move the program headers. Their offset in the file then does not
// determine their address in memory, or whether they are loaded at all.
TEST_F(LawsTest, ModuleMayHaveItsProgramHeadersAnywhereInTheFile) {
  const std::string library = traced_.directory() + "/moved.so";
  MoveProgramHeaders(Program("libplugin.so"), library, uint64_t{1} << 40);
  const Outcome outcome = traced_.Run({Program("local_runtime"), GMT_NULL_RUNTIME, library});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "0\n");
  EXPECT_THAT(traced_.ReadSession().modules, testing::Contains(library));
}

TEST_F(LawsTest, WithoutStacksNoModuleIsExamined) {
  traced_.Run({Program("errno_kept")}, "stacks=none");
  const LeftSession session = traced_.ReadSession();
  EXPECT_THAT(session.modules, IsEmpty());
  EXPECT_EQ(session.records[0].stack, 0u);
}

TEST_F(LawsTest, FreesHaveStacksOnlyIfRequested) {
  // The device, the context, the allocation, the free.
  traced_.Run({Program("errno_kept")});
  EXPECT_THAT(traced_.ReadSession().stacks[3], IsEmpty());
  TracedProgram with;
  with.Run({Program("errno_kept")}, "free_stacks");
  EXPECT_THAT(with.ReadSession().stacks[3], Not(IsEmpty()));
}

}  // namespace
}  // namespace gmt::preload
