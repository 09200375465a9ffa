#include "collector/control/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "collector/control/framing.h"

namespace gmt::control {
namespace {

using testing::HasSubstr;

absl::StatusOr<Request> Parse(const std::function<void(Request&)>& fill) {
  Request request;
  request.set_version(kVersion);
  request.set_id(7);
  fill(request);
  uint64_t id = 0;
  bool other_version = false;
  auto parsed = ParseRequest(request.SerializeAsString(), &id, &other_version);
  EXPECT_EQ(id, 7u);
  EXPECT_EQ(other_version, request.version() != kVersion);
  return parsed;
}

std::string ErrorOf(const std::function<void(Request&)>& fill) {
  return std::string(Parse(fill).status().message());
}

TEST(RequestTest, SubscriptionGetsItsDefaults) {
  const auto request = Parse([](Request& r) { r.mutable_subscribe(); });
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->subscribe().interval_ms(), kDefaultIntervalMs);
  EXPECT_EQ(request->subscribe().rows(), kDefaultRows);
}

TEST(RequestTest, OtherVersionIsRefusedWithOurs) {
  EXPECT_THAT(ErrorOf([](Request& r) {
                r.set_version(9);
                r.mutable_status();
              }),
              HasSubstr("version 9 of the control protocol; this collector speaks version 1"));
}

TEST(RequestTest, UnknownKindOfRequestIsRefused) {
  EXPECT_THAT(ErrorOf([](Request&) {}), HasSubstr("does not know this request"));
}

TEST(RequestTest, NamesAreShortAndOfOneLine) {
  EXPECT_THAT(ErrorOf([](Request& r) { r.mutable_mark(); }), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf([](Request& r) { r.mutable_mark()->set_name("a\nb"); }),
              HasSubstr("control characters"));
  EXPECT_THAT(ErrorOf([](Request& r) { r.mutable_snapshot()->set_name(std::string(201, 'x')); }),
              HasSubstr("longer than 200"));
  EXPECT_TRUE(Parse([](Request& r) { r.mutable_snapshot(); }).ok());
}

TEST(RequestTest, IntervalsAndRowsAreBounded) {
  EXPECT_THAT(ErrorOf([](Request& r) { r.mutable_subscribe()->set_interval_ms(1); }),
              HasSubstr("from 100 to 60000 ms"));
  EXPECT_THAT(ErrorOf([](Request& r) { r.mutable_subscribe()->set_rows(100000); }),
              HasSubstr("more than 256 rows"));
  EXPECT_THAT(ErrorOf([](Request& r) {
                r.mutable_subscribe()->set_what(static_cast<Subscribe::What>(17));
              }),
              HasSubstr("cannot report that"));
}

TEST(RequestTest, GarbageIsNoRequest) {
  uint64_t id = 1;
  bool other_version = true;
  EXPECT_FALSE(ParseRequest("\xff\xff\xff\xff", &id, &other_version).ok());
  EXPECT_EQ(id, 0u);
  EXPECT_FALSE(other_version);
}

}  // namespace
}  // namespace gmt::control
