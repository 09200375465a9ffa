#include "collector/inject/memory_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "collector/inject/proc_file.h"

namespace gmt::inject {
namespace {

constexpr char kMaps[] =
    "00400000-00401000 r-xp 00000000 08:01 12    /usr/bin/a program\n"
    "7f0000000000-7f0000002000 rw-s 00001000 00:05 99 /dev/shm/x.session (deleted)\n"
    "nonsense\n"
    "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]\n";

TEST(MemoryMapTest, LinesAreParsed) {
  const MemoryMap map = ParseMemoryMap(kMaps);
  ASSERT_EQ(map.size(), 3u);  // an invalid line is skipped
  EXPECT_EQ(map[0].path, "/usr/bin/a program");
  EXPECT_TRUE(map[0].executable);
  EXPECT_FALSE(map[0].shared);
  EXPECT_EQ(map[1].start, 0x7f0000000000u);
  EXPECT_EQ(map[1].offset, 0x1000u);
  EXPECT_EQ(map[1].inode, 99u);
  EXPECT_TRUE(map[1].shared);
  EXPECT_EQ(map[1].Name(), "x.session");
  EXPECT_EQ(map[2].path, "[stack]");
}

TEST(MemoryMapTest, AddressIsFoundInItsMapping) {
  const MemoryMap map = ParseMemoryMap(kMaps);
  EXPECT_EQ(FindMapping(map, 0x400000), &map[0]);
  EXPECT_EQ(FindMapping(map, 0x400fff), &map[0]);
  EXPECT_EQ(FindMapping(map, 0x401000), nullptr);
  EXPECT_EQ(FindMapping(map, 0), nullptr);
  EXPECT_EQ(FindMapping(map, ~uint64_t{0}), nullptr);
}

TEST(MemoryMapTest, LibrariesAreDistinguishedByName) {
  const auto named = [](const char* path) {
    Mapping m;
    m.path = path;
    m.inode = 1;
    return m;
  };
  EXPECT_TRUE(IsLibc(named("/lib/x86_64-linux-gnu/libc.so.6")));
  EXPECT_TRUE(IsLibc(named("/lib/libc-2.31.so")));
  EXPECT_FALSE(IsLibc(named("/lib/libc10.so")));
  EXPECT_TRUE(IsLoader(named("/lib64/ld-linux-x86-64.so.2")));
  EXPECT_TRUE(IsMusl(named("/lib/ld-musl-x86_64.so.1")));
  EXPECT_TRUE(IsAllocator(named("/usr/lib/libjemalloc.so.2")));
  EXPECT_TRUE(IsAllocator(named("/usr/lib/libtcmalloc_minimal.so.4")));
  EXPECT_FALSE(IsAllocator(named("/srv/alloc_server"))) << "a program, not a library";
  EXPECT_FALSE(IsAllocator(named("/usr/lib/libm.so.6")));
}

TEST(StatusFieldTest, ValuesAreFoundByTheirWholeName) {
  constexpr char kStatus[] = "Name:\tx\nUid:\t1\t2\nVmSize:\t 3 kB\n";
  EXPECT_EQ(StatusField(kStatus, "Uid"), "1\t2");
  EXPECT_EQ(StatusField(kStatus, "VmSize"), "3 kB");
  EXPECT_EQ(StatusField(kStatus, "Vm"), "");
  EXPECT_EQ(StatusField("", "Uid"), "");
}

}  // namespace
}  // namespace gmt::inject
