#include "collector/sessions/socket_path.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmt::control {
namespace {

namespace fs = std::filesystem;

class SocketPathTest : public testing::Test {
 protected:
  SocketPathTest() {
    char folder[] = "/tmp/socket-path-XXXXXX";
    folder_ = mkdtemp(folder);
    setenv("GPUMEMTRACE_DIR", own().c_str(), 1);
    unsetenv("XDG_RUNTIME_DIR");
  }
  ~SocketPathTest() override {
    unsetenv("GPUMEMTRACE_DIR");
    fs::remove_all(folder_);
  }
  std::string own() const { return folder_ + "/sessions"; }
  std::string OwnSocket() const {
    return own() + "/collector-" + std::to_string(getpid()) + ".sock";
  }

  std::string folder_;
};

TEST_F(SocketPathTest, IsBesideTheSession) {
  EXPECT_EQ(SocketPathOf("/dev/shm/x.session"), "/dev/shm/x.session.sock");
}

TEST_F(SocketPathTest, IsBesideTheFileOfASessionNamedByItsCollector) {
  const std::string path = folder_ + "/x.session";
  const int fd = open(path.c_str(), O_CREAT | O_RDWR, 0600);
  EXPECT_EQ(SocketPathOf(NameByCollector(getpid(), fd)), path + ".sock");
  close(fd);
  EXPECT_FALSE(fs::exists(own()));
}

TEST_F(SocketPathTest, IsInTheCreatedOwnDirectoryForAnUnnamedSession) {
  const int fd = memfd_create("gpumemtrace", 0);
  EXPECT_EQ(SocketPathOf(NameByCollector(getpid(), fd)), OwnSocket());
  EXPECT_EQ(fs::status(own()).permissions(), fs::perms::owner_all);
  close(fd);
}

TEST_F(SocketPathTest, OtherFileAtTheSamePathIsNotUsed) {
  const std::string path = folder_ + "/x.session";
  const int fd = open(path.c_str(), O_CREAT | O_RDWR, 0600);
  fs::rename(path, path + ".away");
  std::ofstream(path) << "another";
  fs::remove(path + ".away");
  EXPECT_EQ(SocketPathOf(NameByCollector(getpid(), fd)), OwnSocket());
  close(fd);
}

TEST_F(SocketPathTest, DirectoryWritableByOthersIsNotUsed) {
  fs::create_directory(own());
  fs::permissions(own(), fs::perms::all);
  const int fd = memfd_create("gpumemtrace", 0);
  EXPECT_THAT(SocketPathOf(NameByCollector(getpid(), fd)),
              testing::Not(testing::StartsWith(own())));
  close(fd);
}

}  // namespace
}  // namespace gmt::control
