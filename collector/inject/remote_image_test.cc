#include "collector/inject/remote_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <random>

#include "collector/inject/testing/fake_image.h"
#include "collector/inject/testing/own_process.h"
#include "tests/seeds/seeds.h"

namespace gmt::inject {
namespace {

class RemoteImageTest : public OwnProcess {
 protected:
  std::optional<RemoteImage> Libc() const { return RemoteImage::At(*memory_, BaseOf(IsLibc)); }
};

TEST_F(RemoteImageTest, FunctionsOfLibcAreFound) {
  const std::optional<RemoteImage> libc = Libc();
  ASSERT_TRUE(libc.has_value());
  const uint64_t found = libc->FindFunction("getppid");
  EXPECT_EQ(found, reinterpret_cast<uint64_t>(&getppid));
  EXPECT_THAT(libc->FunctionsAt(found), testing::Contains("getppid"));
  EXPECT_EQ(libc->FindFunction("no_such_function"), 0u);
  ASSERT_FALSE(libc->code_tails().empty());
  const Mapping* page = FindMapping(map_, libc->code_tails().front().address);
  ASSERT_NE(page, nullptr);
  EXPECT_TRUE(page->executable);
}

TEST_F(RemoteImageTest, FunctionHasAllItsNames) {
  const std::optional<RemoteImage> libc = Libc();
  ASSERT_TRUE(libc.has_value());
  EXPECT_THAT(libc->FunctionsAt(libc->FindFunction("fork") + 1),
              testing::IsSupersetOf({"fork", "__fork"}));
}

TEST_F(RemoteImageTest, ExportsAgreesWithFindFunction) {
  const uint64_t libc = BaseOf(IsLibc);
  const std::optional<RemoteImage> image = Libc();
  ASSERT_TRUE(image.has_value());
  for (const char* name : {"malloc", "free", "getpid", "pthread_create", "mallo", "malloc_", ""}) {
    EXPECT_EQ(RemoteImage::Exports(*memory_, libc, name), image->FindFunction(name) != 0) << name;
  }
  EXPECT_FALSE(RemoteImage::Exports(*memory_, libc + 1, "malloc"));
}

TEST_F(RemoteImageTest, OtherMemoryIsNoImage) {
  static const char kText[4096] = "no image";
  EXPECT_FALSE(RemoteImage::At(*memory_, reinterpret_cast<uint64_t>(kText)).has_value());
  EXPECT_FALSE(RemoteImage::At(*memory_, 0).has_value());
}

TEST_F(RemoteImageTest, FakeImageIsRead) {
  const FakeImage made("malloc");
  EXPECT_TRUE(RemoteImage::Exports(*memory_, made.base(), "malloc"));
  EXPECT_FALSE(RemoteImage::Exports(*memory_, made.base(), "free"));
  const std::optional<RemoteImage> image = RemoteImage::At(*memory_, made.base());
  ASSERT_TRUE(image.has_value());
  EXPECT_EQ(image->FindFunction("malloc"), made.function());
}

TEST_F(RemoteImageTest, EndlessChainIsNotFollowedForLong) {
  const auto made = std::make_unique<FakeImage>("malloc");
  const uint32_t hash = made->chain[0];
  for (uint32_t& word : made->chain) word = 2;
  made->chain[FakeImage::kChain - 1] = hash;
  EXPECT_FALSE(RemoteImage::Exports(*memory_, made->base(), "malloc"));
}

TEST_F(RemoteImageTest, NumbersOutOfBoundsAreRejected) {
  const auto damage = [this](void (*change)(FakeImage*)) {
    FakeImage made("malloc");
    change(&made);
    const auto image = RemoteImage::At(*memory_, made.base());
    EXPECT_FALSE(image.has_value() && image->FindFunction("malloc") != 0);
    EXPECT_FALSE(RemoteImage::Exports(*memory_, made.base(), "malloc"));
  };
  damage([](FakeImage* made) { made->buckets = 0xffffffff; });
  damage([](FakeImage* made) { made->bloom = 0xffffffff; });
  damage([](FakeImage* made) { made->first = 0xffffffff; });
  damage([](FakeImage* made) { made->header.e_phnum = 0xffff; });
  damage([](FakeImage* made) { made->header.e_phoff = ~0ull; });
  damage([](FakeImage* made) { made->segments[1].p_vaddr = 1ull << 62; });
  damage([](FakeImage* made) { made->dynamic[0].d_un.d_ptr = 1ull << 62; });
  damage([](FakeImage* made) { made->dynamic[1].d_un.d_ptr = 1ull << 62; });
}

// The results do not matter, but the functions must return and read nothing outside.
TEST_F(RemoteImageTest, RandomBytesAreSurvived) {
  constexpr size_t kInteresting = offsetof(FakeImage, chain) + 64;
  ForEachSeed(SeedsUpTo(2000), [&](uint32_t seed) {
    std::mt19937 random(seed);
    FakeImage made("malloc");
    for (int change = 0; change < 4; ++change)
      reinterpret_cast<unsigned char*>(&made)[random() % kInteresting] =
          static_cast<unsigned char>(random());
    RemoteImage::Exports(*memory_, made.base(), "malloc");
    RemoteImage::At(*memory_, made.base());
  });
}

}  // namespace
}  // namespace gmt::inject
