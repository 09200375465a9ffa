#include "viewer/html/standalone_html.h"

#include <zlib.h>

#include <algorithm>
#include <string>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmt::viewer {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kPage[] =
    "<!doctype html>\n<html><head><meta http-equiv=\"Content-Security-Policy\" "
    "content=\"script-src "
    "'sha256-x'\"><title>gpumemtrace</title><script type=\"module\">run('<body>')"
    "</script></head><body><div id=\"app\"></div></body></html>";

std::string Inflate(const std::string& gzipped, size_t size) {
  std::string out(size, '\0');
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzipped.data()));
  stream.avail_in = static_cast<uInt>(gzipped.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  inflateEnd(&stream);
  return out;
}

std::string Noise(size_t size) {
  std::string noise(size, '\0');
  uint32_t state = 1;
  for (char& c : noise) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return noise;
}

// Returns the decoded base64 of all elements with that name.
std::string PartOf(const std::string& html, const std::string& name, size_t* elements) {
  const std::string tag = "data-gmt=\"" + name + "\">";
  std::string all;
  *elements = 0;
  for (size_t at = 0; (at = html.find(tag, at)) != std::string::npos; ++*elements) {
    at += tag.size();
    std::string bytes;
    EXPECT_TRUE(absl::Base64Unescape(html.substr(at, html.find("</script>", at) - at), &bytes));
    all += bytes;
  }
  return all;
}

TEST(StandaloneHtmlTest, PartsRoundTrip) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1000}, size_t{3} << 20}) {
    const std::string bytes = Noise(size);
    const DataPart part{"0/lane/1", Gzip(bytes)};
    size_t elements = 0;
    const std::string html = StandaloneHtml(kPage, "run", {part});
    EXPECT_EQ(Inflate(PartOf(html, part.name, &elements), size), bytes);
    EXPECT_EQ(elements, 1u);
  }
}

TEST(StandaloneHtmlTest, LongPartIsSplitOverElements) {
  const DataPart part{"0/clock", Noise(30 << 20)};
  size_t elements = 0;
  EXPECT_EQ(PartOf(StandaloneHtml(kPage, "run", {part}), part.name, &elements), part.gzipped);
  EXPECT_EQ(elements, 3u);
}

TEST(StandaloneHtmlTest, PredictsSizeExactly) {
  const std::vector<DataPart> parts = {{"meta", Noise(100)}, {"0/clock", Noise(13 << 20)}};
  for (const std::string& title : {std::string("run.gmt & others"), std::string(1000, '<')}) {
    EXPECT_EQ(StandaloneSize(kPage, title, parts), StandaloneHtml(kPage, title, parts).size());
  }
}

TEST(StandaloneHtmlTest, TitleIsEscaped) {
  const std::string html = StandaloneHtml(kPage, "</title><script>alert('1')</script>\"&", {});
  EXPECT_THAT(html, HasSubstr("<title>&lt;/title&gt;&lt;script&gt;alert(&#39;1&#39;)"));
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
}

TEST(StandaloneHtmlTest, PolicyComesFirstAndAllowsOnlyThePage) {
  const std::string html = StandaloneHtml(kPage, "run", {});
  const size_t own = html.find("script-src 'sha256-x'"), added = html.find("connect-src 'none'");
  EXPECT_LT(std::max(own, added), html.find("<title>"));
  EXPECT_LT(std::max(own, added), html.find("<script"));
}

TEST(StandaloneHtmlTest, DataIsPlacedInTheBodyEvenIfAScriptContainsABodyTag) {
  const std::string html = StandaloneHtml(kPage, "run", {{"meta", "x"}});
  EXPECT_THAT(html, HasSubstr("run('<body>')</script>"));
  EXPECT_GT(html.find("data-gmt"), html.find("</head>"));
  EXPECT_THAT(html.substr(html.find("</head>")), StartsWith("</head><body>\n<script"));
}

TEST(StandaloneHtmlTest, RejectsInvalidPage) {
  EXPECT_EQ(StandaloneHtml("hello", "run", {}), "");
  std::string without_policy = kPage;
  without_policy.replace(without_policy.find("http-equiv"), 10, "name");
  EXPECT_EQ(StandaloneHtml(without_policy, "run", {}), "");
}

TEST(GzipTest, IsDeterministic) { EXPECT_EQ(Gzip(Noise(5000)), Gzip(Noise(5000))); }

}  // namespace
}  // namespace gmt::viewer
