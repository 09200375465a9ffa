#include "format/strip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proto/gmt.pb.h"

namespace gmt::format {
namespace {

TEST(StripPathTest, SystemFilesStay) {
  EXPECT_EQ(StripPath("/usr/lib/x86_64-linux-gnu/libc.so.6", "/home/ann"),
            "/usr/lib/x86_64-linux-gnu/libc.so.6");
  EXPECT_EQ(StripPath("/lib64/ld-linux-x86-64.so.2", ""), "/lib64/ld-linux-x86-64.so.2");
}

TEST(StripPathTest, PackagesAndTheStandardLibraryKeepTheirOwnDirectories) {
  EXPECT_EQ(StripPath("/home/ann/venv/lib/python3.11/site-packages/torch/nn/linear.py", "/x"),
            "site-packages/torch/nn/linear.py");
  EXPECT_EQ(StripPath("/home/ann/.pyenv/versions/3.11.7/lib/python3.11/threading.py", "/x"),
            "python3.11/threading.py");
  EXPECT_EQ(StripPath("/home/python3.x/secret/a.py", "/x"), "a.py");
}

TEST(StripPathTest, ProgramFilesAreRelativeToItsWorkingDirectory) {
  EXPECT_EQ(StripPath("/home/ann/job/src/model.py", "/home/ann/job"), "src/model.py");
  EXPECT_EQ(StripPath("/home/ann/job/src/model.py", "/home/ann/job/"), "src/model.py");
  EXPECT_EQ(StripPath("/home/ann/jobs/model.py", "/home/ann/job"), "model.py");
  EXPECT_EQ(StripPath("/home/ann/model.py", "/"), "model.py");
}

TEST(StripPathTest, RelativePathStays) {
  EXPECT_EQ(StripPath("src/model.py", "/home/ann"), "src/model.py");
  EXPECT_EQ(StripPath("<frozen runpy>", "/home/ann"), "<frozen runpy>");
  EXPECT_EQ(StripPath("", "/home/ann"), "");
  EXPECT_EQ(StripPath("/", "/home/ann"), "/");
}

TEST(StripPathTest, EveryPathOfATextIsFound) {
  EXPECT_EQ(StripPathsIn("--data=/home/ann/set1,/home/ann/set2 --lr 0.1/2", "/home/ann/job"),
            "--data=set1,set2 --lr 0.1/2");
  EXPECT_EQ(StripPathsIn("unseen: '/opt/secret/libx.so' (/opt/secret/liby.so)", "/"),
            "unseen: 'libx.so' (liby.so)");
}

gmt::Body Facts() {
  gmt::Body body;
  gmt::Facts* facts = body.mutable_facts();
  facts->set_working_directory("/home/ann/job");
  facts->set_executable("/home/ann/bin/python");
  facts->add_argv("/home/ann/bin/python");
  facts->add_argv("--token=s3cret");
  gmt::Setting* option = facts->add_options();
  option->set_name("output");
  option->set_value("/home/ann/job/run.gmt");
  return body;
}

TEST(StripBodyTest, ArgumentsAreRemovedAndTheProgramStays) {
  Strip strip;
  strip.args = true;
  gmt::Body body = Facts();
  EXPECT_TRUE(StripBody(&strip, &body));
  ASSERT_EQ(body.facts().argv_size(), 1);
  EXPECT_EQ(body.facts().argv(0), "/home/ann/bin/python");
  EXPECT_EQ(body.facts().working_directory(), "/home/ann/job");
}

TEST(StripBodyTest, NoPathOfTheUserIsLeft) {
  Strip strip;
  strip.paths = true;
  gmt::Body body = Facts();
  gmt::Definitions* definitions = body.mutable_definitions();
  definitions->add_strings("/home/ann/job/model.py");
  definitions->add_strings("operator/(Money, Money)");
  definitions->add_modules()->set_path("/home/ann/lib/libx.so");
  EXPECT_TRUE(StripBody(&strip, &body));
  EXPECT_EQ(body.SerializeAsString().find("ann"), std::string::npos);
  EXPECT_EQ(body.facts().argv(1), "--token=s3cret");
  EXPECT_EQ(body.facts().options(0).value(), "run.gmt");
  EXPECT_EQ(body.definitions().strings(0), "model.py") << "the working directory is in the facts";
  EXPECT_EQ(body.definitions().strings(1), "operator/(Money, Money)");
}

TEST(StripBodyTest, DtypesShapesAndClassesOfNodesStay) {
  const std::vector<std::string> texts = {"float32", "[8, 1024, 768]", "[]", "SoftmaxBackward0"};
  Strip strip;
  strip.paths = strip.args = true;
  gmt::Body body;
  for (const std::string& text : texts) body.mutable_definitions()->add_strings(text);
  EXPECT_TRUE(StripBody(&strip, &body));
  EXPECT_THAT(body.definitions().strings(), testing::ElementsAreArray(texts));
}

TEST(StripBodyTest, OtherChunksAreLeftAlone) {
  Strip strip;
  strip.paths = strip.args = true;
  gmt::Body body;
  body.mutable_losses()->set_written(7);
  EXPECT_FALSE(StripBody(&strip, &body));
}

}  // namespace
}  // namespace gmt::format
