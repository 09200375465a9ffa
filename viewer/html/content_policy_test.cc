#include "viewer/html/content_policy.h"

#include <gmock/gmock.h>

#include "absl/strings/escaping.h"
#include "viewer/html/sha256.h"

namespace gmt::viewer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string Hex(absl::string_view text) { return absl::BytesToHexString(Sha256(text)); }

// Examples from NIST for FIPS 180-4.
TEST(Sha256Test, MatchesTheExamplesOfTheStandard) {
  EXPECT_EQ(Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(ContentPolicyTest, FindsScriptsAsABrowserDoes) {
  EXPECT_THAT(InlineTexts("<script type=module>a</script><SCRIPT>b</Script ><scripts>c</scripts>",
                          "script"),
              ElementsAre("a", "b"));
  EXPECT_THAT(InlineTexts("<script>\r\nx = '<b>';\r</script>", "script"),
              ElementsAre("\nx = '<b>';\n"));
  EXPECT_THAT(InlineTexts("<script>never ends", "script"), IsEmpty());
  EXPECT_THAT(InlineTexts("<script", "script"), IsEmpty());
}

TEST(ContentPolicyTest, PolicyContainsTheHashesOfThePage) {
  const std::string policy = PagePolicy("<style>s{}</style><script>abc</script>");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy,
              HasSubstr("script-src 'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='"));
  EXPECT_THAT(policy, HasSubstr("connect-src 'self'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
}

TEST(ContentPolicyTest, PageWithoutScriptsRunsNone) {
  EXPECT_THAT(PagePolicy("<p>"), HasSubstr("script-src 'none'; style-src 'none'"));
}

}  // namespace
}  // namespace gmt::viewer
