#include "symbols/symbol_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"
#include "symbols/cache_directory.h"
#include "symbols/testing/sample_library.h"
#include "tests/seeds/seeds.h"

namespace gmt::symbols {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

namespace fs = std::filesystem;

using SymbolList = std::vector<ResolvedSymbol>;

class SymbolCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path base = IsLocal(::testing::TempDir()) ? ::testing::TempDir() : "/dev/shm";
    dir_ = base / ("symbol_cache." + std::to_string(getpid()));
    fs::remove_all(dir_);
    ASSERT_TRUE(MakePrivateDirectory(dir_).ok());
    if (!IsLocal(dir_)) GTEST_SKIP() << "there is no local disk";
  }
  void TearDown() override { fs::remove_all(dir_); }

  fs::path Cache() const { return dir_ / "cache"; }
  fs::path Database() const { return Cache() / "names-1.sqlite"; }
  std::unique_ptr<SymbolCache> Open(uint64_t max_bytes = SymbolCache::kMaxBytes) {
    return SymbolCache::Open(Cache(), max_bytes).value();
  }
  std::string WhyNot(const fs::path& directory) {
    return std::string(SymbolCache::Open(directory).status().message());
  }

  fs::path dir_;
  const SymbolList inlined_ = {
      {"f(int)", "/src/f.cc", 7}, {"g", "", 0}, {"", "/src/only_a_line.cc", 3}};
};

TEST_F(SymbolCacheTest, NextProcessFindsWhatThisOneAdded) {
  Open()->Add("libc", 0x1000, inlined_);
  auto cache = Open();
  EXPECT_THAT(cache->Find("libc", 0x1000), Optional(inlined_));
  EXPECT_EQ(cache->Find("libc", 0x1001), std::nullopt);
  EXPECT_EQ(cache->Find("libm", 0x1000), std::nullopt);
  EXPECT_EQ(cache->hits(), 1u);
}

TEST_F(SymbolCacheTest, AddressWithoutANameIsCachedToo) {
  Open()->Add("libc", UINT64_MAX, {});
  EXPECT_THAT(Open()->Find("libc", UINT64_MAX), Optional(IsEmpty()));
}

TEST_F(SymbolCacheTest, LaterAnswerReplacesTheEarlier) {
  auto cache = Open();
  cache->Add("libc", 1, {});
  cache->Flush();
  cache->Add("libc", 1, inlined_);
  cache->Flush();
  EXPECT_THAT(Open()->Find("libc", 1), Optional(inlined_));
}

TEST_F(SymbolCacheTest, TwoProcessesSeeEachOthersEntries) {
  auto one = Open(), two = Open();
  one->Add("libc", 1, inlined_);
  two->Add("libc", 2, inlined_);
  one->Flush();
  two->Flush();
  EXPECT_THAT(two->Find("libc", 1), Optional(inlined_));
  EXPECT_THAT(one->Find("libc", 2), Optional(inlined_));
}

TEST_F(SymbolCacheTest, OldestModulesAreRemovedAboveTheLimit) {
  constexpr uint64_t kLimit = 1 << 20;
  const SymbolList big = {{std::string(1000, 'f'), "", 1}};
  auto cache = Open(kLimit);
  for (int module = 0; module < 40; ++module) {
    for (uint64_t address = 0; address < 100; ++address) {
      cache->Add(absl::StrCat("module", module), address, big);
    }
    cache->Flush();
  }
  EXPECT_EQ(cache->Find("module0", 1), std::nullopt);
  EXPECT_THAT(cache->Find("module39", 1), Optional(big));
  EXPECT_EQ(cache->lost(), 0u);
  cache.reset();
  // Free pages in the file are reused; one flush may exceed the limit.
  EXPECT_LT(fs::file_size(Database()), 2 * kLimit);
}

TEST_F(SymbolCacheTest, DirectoryWritableByOthersIsRejected) {
  ASSERT_EQ(mkdir(Cache().c_str(), 0700), 0);
  ASSERT_EQ(chmod(Cache().c_str(), 0777), 0);
  EXPECT_THAT(WhyNot(Cache()), HasSubstr("is writable by other users"));
  ASSERT_EQ(chmod(Cache().c_str(), 0770), 0);
  EXPECT_THAT(WhyNot(Cache()), HasSubstr("is writable by other users"));
  fs::remove(Cache());
  fs::create_symlink(dir_, Cache());
  EXPECT_THAT(WhyNot(Cache()), HasSubstr("is not a directory"));
  std::ofstream(dir_ / "file") << "x";
  EXPECT_THAT(WhyNot(dir_ / "file"), HasSubstr("is not a directory"));
  EXPECT_THAT(WhyNot(dir_ / "file/below"), HasSubstr("Not a directory"));
  EXPECT_THAT(WhyNot("/proc/cache"), HasSubstr("/proc/cache"));
  EXPECT_THAT(WhyNot(""), HasSubstr("off"));
}

TEST_F(SymbolCacheTest, NewDirectoriesArePrivateToThisUser) {
  ASSERT_TRUE(SymbolCache::Open(dir_ / "a/b/c").ok());
  struct stat info;
  ASSERT_EQ(stat((dir_ / "a/b/c").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(SymbolCacheTest, DamagedFileIsRemovedAndRecreatedByTheNextProcess) {
  Open()->Add("libc", 1, inlined_);
  std::ofstream(Database(), std::ios::trunc) << std::string(100000, 'x');
  EXPECT_THAT(WhyNot(Cache()), HasSubstr("cannot be used"));
  auto cache = Open();
  EXPECT_EQ(cache->Find("libc", 1), std::nullopt);
  cache->Add("libc", 1, inlined_);
  cache->Flush();
  EXPECT_THAT(cache->Find("libc", 1), Optional(inlined_));
}

// Damage in the middle of an open cache: names may be missing, but none may be wrong.
TEST_F(SymbolCacheTest, CorruptBytesNeverGiveAWrongName) {
  ForEachSeed(SeedsUpTo(20), [&](uint32_t seed) {
    fs::remove_all(Cache());
    {
      auto cache = Open();
      for (uint64_t a = 0; a < 500; ++a) cache->Add("libc", a, {{absl::StrCat("f", a), "", 1}});
    }
    std::mt19937 random(seed);
    std::fstream file(Database(), std::ios::in | std::ios::out | std::ios::binary);
    const auto size = fs::file_size(Database());
    for (int i = 0; i < 200; ++i) {
      file.seekp(static_cast<std::streamoff>(100 + random() % (size - 100)));
      file.put(static_cast<char>(random()));
    }
    file.close();
    auto cache = SymbolCache::Open(Cache());
    if (!cache.ok()) return;
    for (uint64_t a = 0; a < 500; ++a) {
      const auto found = (*cache)->Find("libc", a);
      if (found) {
        EXPECT_EQ(*found, (SymbolList{{absl::StrCat("f", a), "", 1}}));
      }
    }
  });
}

// Eight processes write and read the same modules, and some of them are killed. No process fails,
// and every name found is correct.
TEST_F(SymbolCacheTest, SurvivesKilledProcesses) {
  constexpr int kProcesses = 8;
  const auto names = [](int module, uint64_t address) {
    return SymbolList{
        {absl::StrCat("f", module, ".", address), "/src/f.cc", static_cast<int>(address)}};
  };
  std::vector<pid_t> children;
  for (int n = 0; n < kProcesses; ++n) {
    const pid_t pid = fork();
    if (pid == 0) {
      std::mt19937 random(static_cast<unsigned>(n));
      auto cache = SymbolCache::Open(Cache());
      bool good = cache.ok();
      for (int i = 0; good && i < 3000; ++i) {
        const int module = static_cast<int>(random() % 5);
        const uint64_t address = random() % 1000;
        const std::string files = absl::StrCat("module", module);
        const auto found = (*cache)->Find(files, address);
        good = !found || *found == names(module, address);
        if (!found) (*cache)->Add(files, address, names(module, address));
      }
      cache->reset();
      _exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  usleep(30'000);
  for (int n = 0; n < kProcesses / 2; ++n, usleep(10'000))
    kill(children[static_cast<size_t>(n)], SIGKILL);
  for (size_t n = 0; n < children.size(); ++n) {
    int status = 0;
    waitpid(children[n], &status, 0);
    const bool killed = n < kProcesses / 2 && WIFSIGNALED(status);
    EXPECT_TRUE(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << n << ": " << status;
  }
  auto cache = Open();
  int found = 0;
  for (int module = 0; module < 5; ++module) {
    for (uint64_t address = 0; address < 1000; ++address) {
      const auto symbols = cache->Find(absl::StrCat("module", module), address);
      if (symbols) {
        EXPECT_EQ(*symbols, names(module, address));
      }
      found += symbols.has_value();
    }
  }
  EXPECT_GT(found, 1000);
}

TEST_F(SymbolCacheTest, EnvironmentSelectsTheDirectory) {
  setenv("GPUMEMTRACE_SYMBOL_CACHE", "off", 1);
  EXPECT_EQ(SymbolCache::DefaultDirectory(), "");
  setenv("GPUMEMTRACE_SYMBOL_CACHE", "/fast/names", 1);
  EXPECT_EQ(SymbolCache::DefaultDirectory(), "/fast/names");
  unsetenv("GPUMEMTRACE_SYMBOL_CACHE");
  const std::string home = getenv("HOME") == nullptr ? "" : getenv("HOME");
  setenv("XDG_CACHE_HOME", "/caches", 1);
  EXPECT_EQ(SymbolCache::DefaultDirectory(), "/caches/gpumemtrace/symbols");
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(SymbolCache::DefaultDirectory(), "/home/me/.cache/gpumemtrace/symbols");
  unsetenv("HOME");
  EXPECT_EQ(SymbolCache::DefaultDirectory(), "");
  unsetenv("XDG_CACHE_HOME");
  if (!home.empty()) setenv("HOME", home.c_str(), 1);
}

// ---- With a symbolizer --------------------------------------------------------------------------

class CachedSymbolizerTest : public SymbolCacheTest {
 protected:
  SymbolList Resolve(const fs::path& library, uint64_t* hits = nullptr) {
    auto cache = Open();
    SymbolizerOptions options;
    options.cache = cache.get();
    Symbolizer symbolizer(options);
    const SampleLibrary sample("full");
    auto symbols = symbolizer.Resolve({library, sample.key().build_id},
                                      sample.Probe("sample_inline_probe"), AddressKind::kReturn);
    if (hits != nullptr) *hits = cache->hits();
    return symbols;
  }
  static fs::path Built(const std::string& name) { return fs::path(GMT_SYMBOLS_TESTDATA) / name; }
};

TEST_F(CachedSymbolizerTest, SecondProcessGetsTheSameResultFromTheCache) {
  uint64_t hits = 0;
  const SymbolList first = Resolve(Built("full/sample.so"), &hits);
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(hits, 0u);
  EXPECT_EQ(Resolve(Built("full/sample.so"), &hits), first);
  EXPECT_EQ(hits, 1u);
}

TEST_F(CachedSymbolizerTest, BetterDebugInformationReplacesWorse) {
  fs::copy_file(Built("linked/sample.so"), dir_ / "sample.so");
  EXPECT_THAT(Resolve(dir_ / "sample.so"), IsEmpty());
  EXPECT_THAT(Resolve(dir_ / "sample.so"), IsEmpty());
  fs::create_directory(dir_ / ".debug");
  fs::copy_file(Built("linked/.debug/sample.debug"), dir_ / ".debug/sample.debug");
  uint64_t hits = 0;
  EXPECT_EQ(Resolve(dir_ / "sample.so", &hits).size(), 3u);
  EXPECT_EQ(hits, 0u);
}

TEST_F(CachedSymbolizerTest, ChangedOrMissingFileIsNotServedFromTheCache) {
  fs::copy_file(Built("full/sample.so"), dir_ / "sample.so");
  EXPECT_EQ(Resolve(dir_ / "sample.so").size(), 3u);
  fs::copy_file(Built("plain/sample.so"), dir_ / "sample.so", fs::copy_options::overwrite_existing);
  EXPECT_THAT(Resolve(dir_ / "sample.so"), IsEmpty());
  fs::remove(dir_ / "sample.so");
  EXPECT_THAT(Resolve(dir_ / "sample.so"), IsEmpty());
}

}  // namespace
}  // namespace gmt::symbols
