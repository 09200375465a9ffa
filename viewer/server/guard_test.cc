#include "viewer/server/guard.h"

#include <gmock/gmock.h>

#include <set>

namespace gmt::viewer {
namespace {

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

class GuardTest : public testing::Test {
 protected:
  // Returns the status of the refusal, or 0 if the request is allowed.
  int Ask(const std::string& path, std::vector<std::pair<std::string, std::string>> headers = {}) {
    http::Request request;
    request.path = path;
    request.headers = std::move(headers);
    if (!without_host_) request.headers.emplace_back("host", host_);
    const auto refusal = Guard(kToken).Refuse(request, &rest_);
    return refusal ? refusal->status : 0;
  }
  const std::string page_ = std::string("/") + kToken + "/";
  std::string host_ = "127.0.0.1:4711", rest_;
  bool without_host_ = false;
};

TEST_F(GuardTest, RequestWithTheTokenIsAllowed) {
  EXPECT_EQ(Ask(page_ + "api/meta"), 0);
  EXPECT_EQ(rest_, "/api/meta");
  EXPECT_EQ(Ask(page_), 0);
  EXPECT_EQ(rest_, "/");
}

TEST_F(GuardTest, RequestWithoutTheTokenIsNotFound) {
  const std::string almost = page_.substr(0, 32);  // all but the token's last digit
  for (const std::string& path : std::vector<std::string>{
           "/", "//", "/api/meta", "/favicon.ico", almost + "/", almost + "e/", almost + "f0/",
           "/" + page_, "/x/.." + page_, "/0123456789ABCDEF0123456789ABCDEF/"}) {
    EXPECT_EQ(Ask(path), 404) << path;
  }
}

TEST_F(GuardTest, EmptyTokenGivesNoAccess) {
  http::Request request;
  request.path = "/";
  request.headers = {{"host", "localhost"}};
  EXPECT_TRUE(Guard("").Refuse(request, &rest_));
}

TEST_F(GuardTest, LoopbackNamesAreAllowedOnAnyPort) {
  for (const char* host :
       {"127.0.0.1", "127.0.0.1:80", "localhost:65535", "LocalHost", "[::1]:4711"}) {
    host_ = host;
    EXPECT_EQ(Ask(page_), 0) << host;
  }
}

TEST_F(GuardTest, OtherHostNamesAreRefusedEvenIfTheyResolveToLoopback) {
  for (const char* host :
       {"evil.example", "evil.example:4711", "localhost.evil.example", "127.0.0.1.nip.io",
        "127.0.0.1@evil.example", "localhost:", "localhost:80a", "localhost:123456", "::1", "[::1",
        "[::1]x", "", "0.0.0.0:4711", "127.0.0.2", "localhost, evil.example"}) {
    host_ = host;
    EXPECT_EQ(Ask(page_), 421) << host;
  }
  without_host_ = true;
  EXPECT_EQ(Ask(page_), 421);
}

TEST_F(GuardTest, PageOfAnotherOriginIsRefused) {
  EXPECT_EQ(Ask(page_, {{"origin", "http://127.0.0.1:4711"}}), 0);
  for (const char* origin :
       {"http://evil.example", "null", "https://127.0.0.1:4711", "http://127.0.0.1:4712",
        "http://127.0.0.1", "http://localhost:4711", ""}) {
    EXPECT_EQ(Ask(page_, {{"origin", origin}}), 403) << origin;
  }
}

TEST_F(GuardTest, RequestOfAnotherSiteIsRefused) {
  EXPECT_EQ(Ask(page_ + "api/meta", {{"sec-fetch-site", "same-origin"}}), 0);
  EXPECT_EQ(Ask(page_ + "api/meta", {{"sec-fetch-site", "none"}}), 0);
  EXPECT_EQ(Ask(page_ + "api/meta", {{"sec-fetch-site", "cross-site"}}), 403);
  EXPECT_EQ(Ask(page_ + "api/meta", {{"sec-fetch-site", "same-site"}}), 403);
}

TEST_F(GuardTest, LinkInAnotherPageOpensOnlyThePage) {
  const std::vector<std::pair<std::string, std::string>> link = {{"sec-fetch-site", "cross-site"},
                                                                 {"sec-fetch-mode", "navigate"},
                                                                 {"sec-fetch-dest", "document"}};
  EXPECT_EQ(Ask(page_, link), 0);
  EXPECT_EQ(Ask(page_ + "api/meta", link), 403);
  EXPECT_EQ(Ask(page_, {link[0], link[1], {"sec-fetch-dest", "iframe"}}), 403);
}

TEST_F(GuardTest, TokensDiffer) {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) tokens.insert(MakeToken());
  EXPECT_EQ(tokens.size(), 100);
  EXPECT_EQ(tokens.begin()->size(), 32);
}

}  // namespace
}  // namespace gmt::viewer
