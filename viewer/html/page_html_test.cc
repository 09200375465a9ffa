#include "viewer/html/page_html.h"

#include <zlib.h>

#include <algorithm>
#include <regex>
#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "viewer/html/content_policy.h"

namespace gmt::viewer {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Returns the contents of all <script> elements, concatenated.
std::string Scripts(std::string_view page) {
  std::string all;
  for (size_t at = 0; (at = page.find("<script", at)) != std::string_view::npos;) {
    const size_t begin = page.find('>', at), end = page.find("</script", at);
    if (begin == std::string_view::npos || end == std::string_view::npos) break;
    all.append(page.substr(begin + 1, end - begin - 1));
    at = end;
  }
  return all;
}

size_t Gzipped(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  EXPECT_EQ(compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                      reinterpret_cast<const Bytef*>(text.data()), text.size(), 9),
            Z_OK);
  return size;
}

class PageHtmlTest : public testing::Test {
 protected:
  void SetUp() override {
    if (PageHtml().empty()) GTEST_SKIP() << PageMissing();
  }
};

TEST_F(PageHtmlTest, IsOneWholeDocument) {
  EXPECT_TRUE(PageHtml().starts_with("<!doctype html>"));
  EXPECT_THAT(std::string(PageHtml()), HasSubstr("</html>"));
  EXPECT_GT(Scripts(PageHtml()).size(), 1000u);
}

TEST_F(PageHtmlTest, PolicyListsEachScriptAndStyle) {
  const std::string policy(PolicyOf(PageHtml())), page(PageHtml());
  EXPECT_THAT(policy, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(policy, HasSubstr("style-src 'sha256-"));
  EXPECT_THAT(policy, Not(AnyOf(HasSubstr("unsafe"), HasSubstr("*"))));
  EXPECT_LT(page.find(policy), std::min(page.find("<script"), page.find("<style")));
}

TEST_F(PageHtmlTest, ScriptIsSmall) { EXPECT_LE(Gzipped(Scripts(PageHtml())), 250u * 1000); }

// The only reference in a tag is an empty icon, which keeps browsers from requesting one.
TEST_F(PageHtmlTest, LoadsNothing) {
  const std::regex loads(R"(<(script|link|img|iframe|style)[^>]*(src|href)=(?!"data:,")|@import)");
  std::smatch match;
  const std::string page(PageHtml());
  EXPECT_FALSE(std::regex_search(page, match, loads)) << match.str();
  EXPECT_TRUE(std::regex_search(std::string(R"(<link href="x.css">)"), loads));
}

TEST_F(PageHtmlTest, ContainsTheLicensesOfItsLibraries) {
  const std::string page(PageHtml());
  const size_t notice = page.find("This page contains:\n\npreact");
  ASSERT_NE(notice, std::string::npos);
  EXPECT_LT(notice, page.find("<head>"));
  const std::string terms = page.substr(notice, page.find("-->", notice) - notice);
  EXPECT_THAT(terms, HasSubstr("Copyright (c) 2015-present Jason Miller"));
  EXPECT_THAT(terms, HasSubstr("Permission is hereby granted"));
}

TEST(PageMissingTest, SaysHowToBuildThePage) {
  EXPECT_THAT(std::string(PageMissing()), HasSubstr("scripts/setup --build"));
}

}  // namespace
}  // namespace gmt::viewer
