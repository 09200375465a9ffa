#include "analysis/diff/stack_matching.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gmt::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

FrameText Python(const std::string& function, const std::string& file, uint32_t line) {
  FrameText frame;
  frame.function = function;
  frame.file = file;
  frame.line = line;
  frame.language = "python";
  return frame;
}

FrameText Native(const std::string& function, const std::string& module, uint64_t address,
                 symbols::FrameRole role = symbols::FrameRole::kLibrary) {
  FrameText frame;
  frame.function = function;
  frame.module = module;
  frame.address = address;
  frame.language = "c++";
  frame.role = role;
  return frame;
}

class StackMatchingTest : public ::testing::Test {
 protected:
  static StackToMatch Stack(std::vector<FrameText> frames, uint64_t bytes = 100) {
    StackToMatch stack;
    stack.heap = "pytorch";
    stack.frames = std::move(frames);
    stack.bytes = bytes;
    stack.count = 1;
    return stack;
  }
  // Returns "base>new:tier", ordered by base.
  std::vector<std::string> Matches() const {
    std::vector<std::string> texts;
    for (const StackMatch& match : MatchStacks(base_, new_)) {
      texts.push_back(std::to_string(match.base) + ">" + std::to_string(match.changed) + ":" +
                      std::to_string(match.tier));
    }
    std::sort(texts.begin(), texts.end());
    return texts;
  }

  std::vector<StackToMatch> base_, new_;
};

TEST_F(StackMatchingTest, SameStackMatches) {
  base_ = {Stack({Python("forward", "/a/model.py", 8), Python("main", "/a/train.py", 3)})};
  new_ = base_;
  EXPECT_THAT(Matches(), ElementsAre("0>0:1"));
}

TEST_F(StackMatchingTest, RenamedFileMatches) {
  base_ = {Stack({Python("forward", "/a/model.py", 8), Python("main", "/a/train.py", 3)}),
           Stack({Python("loss", "/a/model.py", 18), Python("main", "/a/train.py", 4)})};
  new_ = {Stack({Python("loss", "/a/network.py", 21), Python("main", "/a/train.py", 4)}),
          Stack({Python("forward", "/a/network.py", 11), Python("main", "/a/train.py", 3)})};
  EXPECT_THAT(Matches(), ElementsAre("0>1:2", "1>0:2"));
}

TEST_F(StackMatchingTest, FilesRenamedTogetherAreDistinguishedByTheirNeighbours) {
  base_ = {Stack({Python("forward", "/a/encoder.py", 8), Python("encode", "/a/train.py", 3)}),
           Stack({Python("forward", "/a/decoder.py", 8), Python("decode", "/a/train.py", 4)})};
  new_ = {Stack({Python("forward", "/a/unpacker.py", 9), Python("decode", "/a/train.py", 4)}),
          Stack({Python("forward", "/a/packer.py", 9), Python("encode", "/a/train.py", 3)})};
  EXPECT_THAT(Matches(), ElementsAre("0>1:2", "1>0:2"));
}

TEST_F(StackMatchingTest, IndistinguishableRenamedFilesAreNotMatched) {
  base_ = {Stack({Python("forward", "/a/encoder.py", 8), Python("main", "/a/train.py", 3)}),
           Stack({Python("forward", "/a/decoder.py", 8), Python("main", "/a/train.py", 3)})};
  new_ = {Stack({Python("forward", "/a/unpacker.py", 9), Python("main", "/a/train.py", 3)}),
          Stack({Python("forward", "/a/packer.py", 9), Python("main", "/a/train.py", 3)})};
  EXPECT_THAT(Matches(), IsEmpty());
}

TEST_F(StackMatchingTest, FunctionMovedToAnExistingFileDoesNotMatch) {
  base_ = {Stack({Python("forward", "/a/model.py", 8), Python("main", "/a/train.py", 3)}),
           Stack({Python("loss", "/a/losses.py", 5), Python("main", "/a/train.py", 4)})};
  new_ = {Stack({Python("forward", "/a/losses.py", 30), Python("main", "/a/train.py", 3)}),
          Stack({Python("loss", "/a/losses.py", 5), Python("main", "/a/train.py", 4)})};
  EXPECT_THAT(Matches(), ElementsAre("1>1:1"));
}

TEST_F(StackMatchingTest, MovedLinesAndOtherFoldersMatch) {
  base_ = {Stack({Python("forward", "/a/model.py", 8), Python("main", "/a/train.py", 3)})};
  new_ = {Stack({Python("forward", "/b/c/model.py", 12), Python("main", "/b/c/train.py", 5)})};
  EXPECT_THAT(Matches(), ElementsAre("0>0:2"));
}

TEST_F(StackMatchingTest, OtherFileIsAnotherStack) {
  base_ = {Stack({Python("forward", "/a/model.py", 8)})};
  new_ = {Stack({Python("forward", "/a/other.py", 8)})};
  EXPECT_THAT(Matches(), IsEmpty());
}

TEST_F(StackMatchingTest, AddressesOfAnotherProcessAreIgnored) {
  base_ = {Stack({Native("", "/x/libnccl.so.2", 0x1234), Python("main", "/a/train.py", 3)})};
  new_ = {Stack({Native("", "/y/libnccl.so.2", 0x5678), Python("main", "/a/train.py", 3)})};
  EXPECT_THAT(Matches(), ElementsAre("0>0:2"));
}

TEST_F(StackMatchingTest, StacksOfOtherRecordersAreMatchedByTheProgramsFrames) {
  base_ = {Stack({Native("c10::cuda::alloc(unsigned long)", "libc10.so", 1),
                  Python("Net.forward", "/a/model.py", 8), Python("main", "/a/train.py", 3)})};
  new_ = {Stack({Python("forward", "/a/model.py", 8), Python("main", "/a/train.py", 3)})};
  EXPECT_THAT(Matches(), ElementsAre("0>0:3"));
}

TEST_F(StackMatchingTest, CallersMayDifferIfOwnFrameAndCategoryAreTheSame) {
  base_ = {Stack({Python("forward", "/a/model.py", 8), Python("main", "/a/train.py", 3)})};
  new_ = {Stack({Python("forward", "/a/model.py", 8), Python("epoch", "/a/train.py", 3),
                 Python("main", "/a/train.py", 30)})};
  EXPECT_THAT(Matches(), ElementsAre("0>0:4"));
  new_[0].category = Category::kGradients;
  EXPECT_THAT(Matches(), IsEmpty());
}

TEST_F(StackMatchingTest, ThreadOfALibraryIsMatchedByTheRequestingFunction) {
  const FrameText asks = Native("at::setWorkspace", "libtorch_cuda.so", 8);
  base_ = {Stack({Native("alloc", "libc10.so", 1, symbols::FrameRole::kAllocator), asks,
                  Native("thread_init", "libtorch_cpu.so", 4)})};
  new_ = {Stack({asks})};
  base_[0].category = new_[0].category = Category::kWorkspaces;
  EXPECT_THAT(Matches(), ElementsAre("0>0:4"));
  new_[0].frames[0].function = "at::resize";
  EXPECT_THAT(Matches(), IsEmpty());
}

TEST_F(StackMatchingTest, MatchesAreOneToOne) {
  base_ = {Stack({Python("forward", "/a/model.py", 8)})};
  new_ = {Stack({Python("forward", "/a/model.py", 9)}),
          Stack({Python("forward", "/a/model.py", 10)})};
  EXPECT_THAT(Matches(), SizeIs(1));
}

TEST_F(StackMatchingTest, OfSeveralThoseOfEqualBytesArePaired) {
  base_ = {Stack({Python("forward", "/a/model.py", 8)}, 100),
           Stack({Python("forward", "/a/model.py", 9)}, 200)};
  // A line was added before both.
  new_ = {Stack({Python("forward", "/a/model.py", 7)}, 50),
          Stack({Python("forward", "/a/model.py", 11)}, 100),
          Stack({Python("forward", "/a/model.py", 12)}, 200)};
  EXPECT_THAT(Matches(), ElementsAre("0>1:2", "1>2:2"));
}

TEST_F(StackMatchingTest, OfSeveralTheOthersArePairedInTheOrderOfTheirLines) {
  base_ = {Stack({Python("forward", "/a/model.py", 20)}, 1),
           Stack({Python("forward", "/a/model.py", 9)}, 2)};
  new_ = {Stack({Python("forward", "/a/model.py", 10)}, 3),
          Stack({Python("forward", "/a/model.py", 21)}, 4)};
  EXPECT_THAT(Matches(), UnorderedElementsAre("0>1:2", "1>0:2"));
}

TEST_F(StackMatchingTest, ExactMatchTakesPrecedenceOverMoved) {
  base_ = {Stack({Python("forward", "/a/model.py", 8)}, 100)};
  new_ = {Stack({Python("forward", "/a/model.py", 7)}, 100),
          Stack({Python("forward", "/a/model.py", 8)}, 900)};
  EXPECT_THAT(Matches(), ElementsAre("0>1:1"));
}

TEST_F(StackMatchingTest, HeapsAreSeparate) {
  base_ = {Stack({Python("forward", "/a/model.py", 8)})};
  new_ = base_;
  new_[0].heap = "driver";
  EXPECT_THAT(Matches(), IsEmpty());
}

TEST_F(StackMatchingTest, BackwardMemoryOfAnotherRecorderIsMatchedByItsForwardStack) {
  base_ = {Stack({Native("at::mm(at::Tensor const&)", "libtorch_cpu.so", 1)})};
  base_[0].forward_frames = {Python("Net.forward", "/a/model.py", 8)};
  new_ = {Stack({Native("at::mm", "", 0),
                 Native("backward of this forward call:", "", 0, symbols::FrameRole::kOwn),
                 Python("Net.forward", "/a/model.py", 8)})};
  new_[0].forward_frames = base_[0].forward_frames;
  EXPECT_THAT(Matches(), ElementsAre("0>0:3"));
}

TEST_F(StackMatchingTest, NativeFrameMatchesWithFileOrModule) {
  base_ = {Stack({Native("at::cuda::alloc(int)", "/t/libtorch_cuda.so", 7)})};
  new_ = base_;
  new_[0].frames[0].module = "";
  new_[0].frames[0].file = "/t/libtorch_cuda.so";
  EXPECT_THAT(Matches(), ElementsAre("0>0:4"));
}

TEST_F(StackMatchingTest, WithoutFramesMatchesWithoutFrames) {
  base_ = {Stack({}), Stack({Python("forward", "/a/model.py", 8)})};
  new_ = {Stack({}, 300)};
  EXPECT_THAT(Matches(), ElementsAre("0>0:1"));
}

TEST_F(StackMatchingTest, BackwardMemoryIsMatchedByItsForwardStackToo) {
  base_ = {Stack({Python("run", "/a/train.py", 8)})};
  base_[0].forward_frames = {Python("forward", "/a/model.py", 8)};
  new_ = base_;
  new_[0].forward_frames = {Python("other", "/a/model.py", 8)};
  EXPECT_THAT(Matches(), IsEmpty());
}

}  // namespace
}  // namespace gmt::analysis
