#include "http/access.h"

#include <gtest/gtest.h>

#include <string>

namespace gmt::http {
namespace {

TEST(AccessTest, OnlyTheWholeSecretIsAccepted) {
  EXPECT_TRUE(IsSecret("0123456789abcdef", "0123456789abcdef"));
  for (const char* given : {"", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef0"})
    EXPECT_FALSE(IsSecret(given, "0123456789abcdef")) << given;
  EXPECT_FALSE(IsSecret("", "")) << "an empty secret gives no access";
}

TEST(AccessTest, AddressesAndLocalhostAreNoNamesOfOthers) {
  for (const char* host : {"", "127.0.0.1", "127.0.0.1:9400", "10.0.0.7:80", "[::1]:9400",
                           "[fe80::1]", "localhost", "localhost:9400"}) {
    EXPECT_TRUE(IsAddressOrLocalhost(host)) << host;
  }
  for (const char* host : {"rebound.example.org", "127.0.0.1.example.org", "localhost.example.org",
                           "example:80", "a.1.2.3"}) {
    EXPECT_FALSE(IsAddressOrLocalhost(host)) << host;
  }
}

}  // namespace
}  // namespace gmt::http
