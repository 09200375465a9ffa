#include "session/module_log.h"

#include <gtest/gtest.h>

#include <cstring>

#include "session/arena_reader.h"
#include "session/testing/session_fixture.h"

namespace gmt::session {
namespace {

class ModuleLogTest : public ::testing::Test {
 protected:
  bool Append(const std::string& path, uint64_t start, uint64_t end) {
    ModuleRecord record = {};
    record.start = start;
    record.end = end;
    record.bias = start;
    record.build_id_size = 2;
    record.build_id[0] = 0xab;
    record.path_size = static_cast<uint32_t>(path.size());
    std::memcpy(record.path, path.data(), path.size());
    return log_.Append(record, 1);
  }
  std::vector<ModuleCopy> Read() {
    std::vector<ModuleCopy> modules;
    ReadNewModules(session_.map(), &modules);
    return modules;
  }

  ScratchSession session_;
  ModuleLog log_ = session_.map().modules();
};

TEST_F(ModuleLogTest, AddressIsFoundInItsModule) {
  Append("/lib/a.so", 0x1000, 0x2000);
  Append("/lib/b.so", 0x2000, 0x3000);
  EXPECT_EQ(std::string(log_.Find(0x1fff)->path), "/lib/a.so");
  EXPECT_EQ(std::string(log_.Find(0x2000)->path), "/lib/b.so");
  EXPECT_EQ(log_.Find(0x3000), nullptr);
  EXPECT_EQ(log_.generation(), 0u);
}

TEST_F(ModuleLogTest, ModuleThatTakesOverAddressesRaisesTheGeneration) {
  Append("/lib/a.so", 0x1000, 0x2000);
  Append("/lib/b.so", 0x1800, 0x2800);
  EXPECT_EQ(log_.generation(), 1u);
  EXPECT_EQ(std::string(log_.Find(0x1900)->path), "/lib/b.so");
  Append("/lib/c.so", 0x9000, 0xa000);
  EXPECT_EQ(log_.generation(), 1u);
}

// Two threads meet a library at the same time, and both find that it is not in the log.
TEST_F(ModuleLogTest, ModuleAppendedTwiceIsOneRecordOfOneGeneration) {
  EXPECT_TRUE(Append("/lib/a.so", 0x1000, 0x2000));
  EXPECT_TRUE(Append("/lib/a.so", 0x1000, 0x2000));
  EXPECT_EQ(log_.count(), 1u);
  EXPECT_EQ(log_.generation(), 0u);
}

TEST_F(ModuleLogTest, UnloadAndReloadRaiseTheGeneration) {
  Append("/lib/a.so", 0x1000, 0x2000);
  ModuleRecord gone = {};
  gone.start = 0x1000;
  gone.end = 0x2000;
  EXPECT_TRUE(log_.Append(gone, 1));
  EXPECT_EQ(log_.generation(), 1u);
  EXPECT_TRUE(ModuleLog::IsGone(*log_.Find(0x1800)));
  Append("/lib/a.so", 0x1000, 0x2000);
  EXPECT_EQ(log_.generation(), 2u);
  EXPECT_FALSE(ModuleLog::IsGone(*log_.Find(0x1800)));
  const std::vector<ModuleCopy> modules = Read();
  ASSERT_EQ(modules.size(), 3u);
  EXPECT_EQ(modules[1].path, "");
  EXPECT_EQ(modules[1].generation, 1u);
}

TEST_F(ModuleLogTest, FullLogRejectsAndCounts) {
  for (uint64_t i = 0; i < 8; ++i) EXPECT_TRUE(Append("/x", i * 16, i * 16 + 16));
  EXPECT_FALSE(Append("/y", 0x1000, 0x2000));
  EXPECT_EQ(session_.control().counters[kModulesFull].load(), 1u);
  EXPECT_EQ(log_.count(), 8u);
}

TEST_F(ModuleLogTest, ThreadThatFindsTheLogBusyDoesNotWait) {
  session_.control().module_lock.store(42);
  EXPECT_FALSE(Append("/lib/a.so", 0x1000, 0x2000));
  EXPECT_EQ(log_.count(), 0u);
  session_.control().module_lock.store(0);
  EXPECT_TRUE(Append("/lib/a.so", 0x1000, 0x2000));
}

TEST_F(ModuleLogTest, CorruptCountDoesNotMakeTheWriterLeaveTheLog) {
  Append("/lib/a.so", 0x1000, 0x2000);
  session_.control().module_count.store(0xffffffff);
  EXPECT_EQ(log_.count(), 8u);
  EXPECT_EQ(log_.generation(), 0u);
  EXPECT_NE(log_.Find(0x1000), nullptr);
  EXPECT_FALSE(Append("/lib/b.so", 0x3000, 0x4000));
}

TEST_F(ModuleLogTest, ReaderCopiesNewRecords) {
  Append("/lib/a.so", 0x1000, 0x2000);
  std::vector<ModuleCopy> modules = Read();
  ASSERT_EQ(modules.size(), 1u);
  EXPECT_EQ(modules[0].path, "/lib/a.so");
  EXPECT_EQ(modules[0].build_id, std::string("\xab\0", 2));
  Append("/lib/b.so", 0x2000, 0x3000);
  ReadNewModules(session_.map(), &modules);
  ASSERT_EQ(modules.size(), 2u);
  EXPECT_EQ(modules[1].path, "/lib/b.so");
}

TEST_F(ModuleLogTest, ReaderLimitsCorruptSizes) {
  Append("/lib/a.so", 0x2000, 0x1000);
  auto* record = session_.map().section<ModuleRecord>(kModules);
  record->path_size = record->build_id_size = 0xffffffff;
  session_.control().module_count.store(0xffffffff);
  const std::vector<ModuleCopy> modules = Read();
  EXPECT_EQ(modules.size(), 8u);
  EXPECT_EQ(modules[0].path.size(), sizeof(record->path));
  EXPECT_EQ(modules[0].end, modules[0].start);
}

}  // namespace
}  // namespace gmt::session
