#include "viewer/html/content_policy.h"

#include <gmock/gmock.h>

namespace gmt::viewer {
namespace {

constexpr char kTag[] = "<meta http-equiv=\"Content-Security-Policy\" content=\"script-src 'x'\">";

TEST(ContentPolicyTest, ServerAddsThatNoPageMayFrameThePage) {
  const std::string page = std::string("<head>") + kTag + "<script>1</script>";
  EXPECT_EQ(PolicyOf(page), "script-src 'x'");
  EXPECT_EQ(PolicyHeader(page), "script-src 'x'; frame-ancestors 'none'");
}

TEST(ContentPolicyTest, PageWithoutPolicyExecutesNothing) {
  for (const std::string& page :
       {std::string(), std::string("<script>1</script>"), "<script>" + std::string(kTag)}) {
    EXPECT_EQ(PolicyOf(page), "") << page;
    EXPECT_EQ(PolicyHeader(page), "default-src 'none'; frame-ancestors 'none'") << page;
  }
}

}  // namespace
}  // namespace gmt::viewer
