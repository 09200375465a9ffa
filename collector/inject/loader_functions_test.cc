#include "collector/inject/loader_functions.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "collector/inject/testing/fake_image.h"
#include "collector/inject/testing/own_process.h"

namespace gmt::inject {
namespace {

// Processes of older glibc releases, simulated by what their libraries export.
class LoaderFunctionsTest : public OwnProcess {
 protected:
  LoaderFunctions Find(const MemoryMap& map) const {
    const std::optional<RemoteImage> libc = FindLibc(*memory_, map);
    EXPECT_TRUE(libc.has_value());
    return libc.has_value() ? FindLoaderFunctions(*memory_, map, *libc) : LoaderFunctions{};
  }

  // Up to glibc 2.33; file names existed in both styles.
  const FakeImage old_libc_{"__errno_location", "__libc_dlopen_mode", "__libc_dlsym"};
  const FakeImage libdl_{"dlopen", "dlsym", "dlerror"};
};

TEST_F(LoaderFunctionsTest, LibcOfThisProcessHasThem) {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
  const LoaderFunctions found = Find(map_);
  void* libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  EXPECT_EQ(found.dlopen, reinterpret_cast<uint64_t>(dlsym(libc, "dlopen")));
  EXPECT_EQ(found.dlsym, reinterpret_cast<uint64_t>(dlsym(libc, "dlsym")));
  EXPECT_EQ(found.dlerror, reinterpret_cast<uint64_t>(dlsym(libc, "dlerror")));
  EXPECT_EQ(found.errno_location, reinterpret_cast<uint64_t>(dlsym(libc, "__errno_location")));
  EXPECT_EQ(found.mode, static_cast<uint64_t>(RTLD_NOW | RTLD_LOCAL));
  dlclose(libc);
#else
  GTEST_SKIP() << "this libc has none";
#endif
}

TEST_F(LoaderFunctionsTest, OldLibcHasThemInLibdl) {
  for (const auto& [libc, libdl] : {std::pair("/lib/libc-2.31.so", "/lib/libdl-2.31.so"),
                                    std::pair("/lib64/libc.so.6", "/lib64/libdl.so.2")}) {
    const LoaderFunctions found = Find({old_libc_.MappedFrom(libc), libdl_.MappedFrom(libdl)});
    EXPECT_EQ(found.dlopen, libdl_.function(0)) << libdl;
    EXPECT_EQ(found.dlsym, libdl_.function(1)) << libdl;
    EXPECT_EQ(found.dlerror, libdl_.function(2)) << libdl;
    EXPECT_EQ(found.errno_location, old_libc_.function(0)) << libc;
    EXPECT_EQ(found.mode, static_cast<uint64_t>(RTLD_NOW | RTLD_LOCAL));
  }
}

// The internal functions give no reason for a failure, and require a flag that the caller is libc.
TEST_F(LoaderFunctionsTest, OldLibcWithoutLibdlHasInternalFunctions) {
  const LoaderFunctions found = Find({old_libc_.MappedFrom("/lib/libc-2.31.so")});
  EXPECT_EQ(found.dlopen, old_libc_.function(1));
  EXPECT_EQ(found.dlsym, old_libc_.function(2));
  EXPECT_EQ(found.dlerror, 0u);
  EXPECT_EQ(found.mode, 0x80000000u | RTLD_NOW | RTLD_LOCAL);
}

TEST_F(LoaderFunctionsTest, EmptyLibdlOfNewerGlibcIsNotUsed) {
  const FakeImage libc{"__errno_location", "dlopen", "dlsym", "dlerror"};
  const FakeImage empty{"__libdl_version_placeholder"};
  const LoaderFunctions found =
      Find({empty.MappedFrom("/lib/libdl.so.2"), libc.MappedFrom("/lib/libc.so.6")});
  EXPECT_EQ(found.dlopen, libc.function(1));
  EXPECT_EQ(found.dlsym, libc.function(2));
  EXPECT_EQ(found.dlerror, libc.function(3));
}

TEST_F(LoaderFunctionsTest, IncompleteFunctionsAreNotUsed) {
  const FakeImage libc{"__errno_location", "__libc_dlopen_mode"};
  const FakeImage libdl{"dlopen", "dlerror"};
  const LoaderFunctions found =
      Find({libc.MappedFrom("/lib/libc-2.31.so"), libdl.MappedFrom("/lib/libdl-2.31.so")});
  EXPECT_EQ(found.dlopen, 0u);
  EXPECT_EQ(found.dlsym, 0u);
}

TEST_F(LoaderFunctionsTest, ProcessWithoutGlibcHasNone) {
  EXPECT_FALSE(FindLibc(*memory_, {libdl_.MappedFrom("/lib/ld-musl-x86_64.so.1")}).has_value());
}

}  // namespace
}  // namespace gmt::inject
