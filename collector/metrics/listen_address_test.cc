#include "collector/metrics/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace gmt::metrics {
namespace {

using testing::HasSubstr;

std::string Parsed(const std::string& text, const std::string& rank = "") {
  const auto address = ParseListenAddress(text, rank);
  return address.ok() ? address->Text() : std::string(address.status().message());
}

TEST(ListenAddressTest, LoopbackNeedsNoToken) {
  EXPECT_EQ(Parsed("127.0.0.1:9400"), "127.0.0.1:9400");
  EXPECT_EQ(Parsed("localhost:9400"), "127.0.0.1:9400");
  EXPECT_EQ(Parsed("127.1.2.3:0"), "127.1.2.3:0");
  EXPECT_EQ(Parsed("[::1]:9400"), "[::1]:9400");
  EXPECT_EQ(Parsed("unix:/run/a.sock"), "unix:/run/a.sock");
}

TEST(ListenAddressTest, OtherAddressNeedsAToken) {
  EXPECT_THAT(Parsed("0.0.0.0:9400"), HasSubstr("needs a token"));
  EXPECT_THAT(Parsed("[::]:9400"), HasSubstr("needs a token"));
  EXPECT_THAT(Parsed("10.0.0.1:9400"), HasSubstr("needs a token"));
  EXPECT_EQ(Parsed("0.0.0.0:9400+token:/etc/token"), "0.0.0.0:9400");
}

TEST(ListenAddressTest, ProcessesOfAJobUseDifferentPorts) {
  EXPECT_EQ(Parsed("127.0.0.1:9400", "3"), "127.0.0.1:9403");
  EXPECT_EQ(Parsed("127.0.0.1:0", "3"), "127.0.0.1:0");
  EXPECT_THAT(Parsed("127.0.0.1:65535", "1"), HasSubstr("above 65535"));
}

TEST(ListenAddressTest, InvalidAddressIsReported) {
  EXPECT_THAT(Parsed("9400"), HasSubstr("not ADDRESS:PORT"));
  EXPECT_THAT(Parsed("example.org:80"), HasSubstr("not numeric"));
  EXPECT_THAT(Parsed("127.0.0.1:x"), HasSubstr("port"));
  EXPECT_THAT(Parsed("127.0.0.1:70000"), HasSubstr("port"));
  EXPECT_THAT(Parsed("unix:"), HasSubstr("no path"));
  EXPECT_THAT(Parsed("127.0.0.1:1+token:"), HasSubstr("no file"));
}

TEST(ListenAddressTest, TokenIsTheFirstLineOfAPrivateFile) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("gmt_token." + std::to_string(getpid()))).string();
  std::ofstream(file) << "0123456789abcdef\nmore\n";
  chmod(file.c_str(), 0600);
  EXPECT_EQ(ReadToken(file).value_or(""), "0123456789abcdef");
  chmod(file.c_str(), 0640);
  EXPECT_THAT(std::string(ReadToken(file).status().message()), HasSubstr("chmod 600"));
  std::ofstream(file) << "short";
  chmod(file.c_str(), 0600);
  EXPECT_THAT(std::string(ReadToken(file).status().message()), HasSubstr("shorter than 16"));
  std::remove(file.c_str());
  EXPECT_FALSE(ReadToken(file).ok());
  EXPECT_FALSE(ReadToken("/").ok());
}

}  // namespace
}  // namespace gmt::metrics
