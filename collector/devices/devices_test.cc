// What a recording says about devices, from the traced process and from NVML.

#include "collector/devices/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "collector/testing/collector_fixture.h"
#include "collector/testing/fake_device_source.h"
#include "format/units.h"

namespace gmt::collector {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kUuid[] = "GPU-33333333-0000-0000-0000-000000000000";

DeviceReading Used(uint64_t used) { return {80 * kGiB, used, kGiB, std::nullopt}; }

// A recorder that writes into memory, and Devices that write to it.
class DevicesTest : public ::testing::Test {
 protected:
  DevicesTest() {
    machine_->devices[kUuid] = {7, kUuid, 3, "9.0"};
    machine_->memory[7] = Used(4 * kGiB);
    auto writer = format::RecordingWriter::Create(
        std::make_unique<OutputFile>([this](const char* bytes, size_t size) {
          bytes_.append(bytes, size);
          return static_cast<ssize_t>(size);
        }),
        MakeHeader(target_.map().header(), {}), {});
    recorder_ =
        std::make_unique<Recorder>(target_.map(), SessionInfo(), nullptr, *std::move(writer));
  }

  // Creates Devices that are read continuously; the process uses one.
  void Use(uint64_t every_ns = kMillisecond, const std::string& visible = "") {
    devices_ = std::make_unique<Devices>(std::make_unique<FakeDeviceSource>(machine_), getpid(),
                                         visible, every_ns);
    devices_->AddDevice({0, "H100", {kUuid, "0000:65:00.0"}, 80 * kGiB, "9.0"});
  }
  // Waits until devices_ has received a reading that began after this call.
  void ReadOn() { machine_->AwaitReads(3); }

  gmt::Facts Facts() {
    gmt::Facts facts;
    devices_->TakeChanged();
    devices_->AddTo({}, &facts);
    return facts;
  }
  Recording Finish() {
    EXPECT_TRUE(recorder_->Finish().ok());
    return ReadBack(bytes_);
  }

  FakeTarget target_;
  std::string bytes_;
  std::shared_ptr<FakeMachine> machine_ = std::make_shared<FakeMachine>();
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Devices> devices_;
};

TEST_F(DevicesTest, DeviceCombinesTheFactsOfProcessAndNvml) {
  Use();
  ReadOn();
  const gmt::Facts facts = Facts();
  ASSERT_THAT(facts.devices(), SizeIs(1));
  const gmt::Device& device = facts.devices(0);
  EXPECT_EQ(device.name(), "H100");
  EXPECT_EQ(device.uuid(), kUuid);
  EXPECT_EQ(device.pci_bus_id(), "0000:65:00.0");
  EXPECT_EQ(device.total_bytes(), 80 * kGiB);
  EXPECT_EQ(device.physical_index(), 3u);
  EXPECT_EQ(device.compute_capability(), "9.0");
}

TEST_F(DevicesTest, ChangeIsReportedOnce) {
  Use();
  EXPECT_TRUE(devices_->TakeChanged());
  ReadOn();
  devices_->TakeChanged();
  EXPECT_FALSE(devices_->TakeChanged());
}

TEST_F(DevicesTest, MigInstanceHasTheUuidFromNvml) {
  machine_->devices[kUuid].uuid = "MIG-33333333-0000-0000-0000-000000000000";
  Use();
  ReadOn();
  EXPECT_THAT(Facts().devices(0).uuid(), StartsWith("MIG-"));
}

TEST_F(DevicesTest, WithoutNvmlAMigInstanceIsKnownFromCudaVisibleDevices) {
  machine_->open = absl::NotFoundError("libnvidia-ml.so.1 was not found");
  Use(kMillisecond, "MIG-33333333-0000-0000-0000-000000000000");
  EXPECT_EQ(Facts().devices(0).uuid(), "MIG-33333333-0000-0000-0000-000000000000");
}

TEST_F(DevicesTest, UnchangedMemoryIsOneSample) {
  Use();
  for (int i = 0; i < 5; ++i) {
    ReadOn();
    machine_->Set(7, Used(4 * kGiB + kMiB * (i % 2)));  // less than a page up and down
    devices_->WriteSamples(recorder_.get(), /*drained=*/true);
  }
  EXPECT_EQ(Finish().Count(gmt::SAMPLE), 1u);
}

TEST_F(DevicesTest, ChangeOfMoreThanAPageIsAnotherSample) {
  Use();
  ReadOn();
  devices_->WriteSamples(recorder_.get(), true);
  machine_->Set(7, Used(4 * kGiB + 3 * kMiB));
  ReadOn();
  devices_->WriteSamples(recorder_.get(), true);
  const Recording recording = Finish();
  EXPECT_EQ(recording.Count(gmt::SAMPLE), 2u);
}

TEST_F(DevicesTest, NewProcessIsAnotherSample) {
  Use();
  ReadOn();
  devices_->WriteSamples(recorder_.get(), true);
  DeviceReading reading = Used(4 * kGiB);
  reading.processes = {{1, kMiB}};
  machine_->Set(7, reading);
  ReadOn();
  devices_->WriteSamples(recorder_.get(), true);
  reading.processes->push_back({2, std::nullopt});
  machine_->Set(7, reading);
  ReadOn();
  devices_->WriteSamples(recorder_.get(), true);
  EXPECT_EQ(Finish().Count(gmt::SAMPLE), 3u);
}

TEST_F(DevicesTest, SampleWaitsForEarlierEventsOfTheTarget) {
  Use();
  ReadOn();
  devices_->WriteSamples(recorder_.get(), /*drained=*/false);
  session::Record record;
  record.kind = session::Kind::kMark;
  record.time_ns = target_.start_ns() + 1;  // it was in the ring all the time
  recorder_->Add(record, 0);
  devices_->WriteSamples(recorder_.get(), /*drained=*/true);
  const Recording recording = Finish();
  ASSERT_EQ(recording.Count(gmt::SAMPLE), 1u);
  EXPECT_EQ(recording.events.front().kind, gmt::MARK);
}

TEST_F(DevicesTest, SnapshotShowsTheCurrentUse) {
  Use(3600 * kSecond);
  while (devices_->Source(false) != "on") std::this_thread::yield();  // waits for the first reading
  devices_->ShowAtEnd(recorder_.get(), 60 * kSecond);
  machine_->Set(7, Used(9 * kGiB));
  devices_->ShowAtEnd(recorder_.get(), 60 * kSecond);
  recorder_->AddSnapshot("oom-1", "oom", {}, {});
  devices_->WriteSamples(recorder_.get(), true);
  const Recording recording = Finish();
  ASSERT_THAT(recording.snapshots, SizeIs(1));
  ASSERT_THAT(recording.snapshots[0].samples(), SizeIs(1));
  EXPECT_EQ(recording.snapshots[0].samples(0).used_bytes(), 9 * kGiB);
  EXPECT_EQ(recording.snapshots[0].samples(0).reserved_bytes(), kGiB);
  EXPECT_EQ(recording.snapshots[0].samples(0).source(), "nvml");
  EXPECT_EQ(recording.Count(gmt::SAMPLE), 3u);  // the first one, and those shown in snapshots
}

TEST_F(DevicesTest, ProcessesOfOurPidNamespaceHaveNames) {
  DeviceReading reading = Used(4 * kGiB);
  reading.processes = {{static_cast<uint64_t>(getpid()), kMiB}, {1 << 30, std::nullopt}};
  machine_->Set(7, reading);
  Use(3600 * kSecond);
  devices_->ShowAtEnd(recorder_.get(), 60 * kSecond);
  recorder_->AddSnapshot("exit", "exit", {}, {});
  const Recording recording = Finish();
  const auto& processes = recording.snapshots[0].samples(0).processes();
  ASSERT_THAT(processes, SizeIs(2));
  EXPECT_EQ(processes[0].name(), "collector_test");
  EXPECT_EQ(processes[0].bytes(), kMiB);
  EXPECT_EQ(processes[1].name(), "");
  EXPECT_FALSE(processes[1].has_bytes());
}

TEST_F(DevicesTest, SourceReportsWhatIsMissing) {
  EXPECT_EQ(Devices(nullptr, 1, "").Source(false), "off");
  EXPECT_THAT(Devices(std::make_unique<FakeDeviceSource>(machine_), 1, "").Source(false),
              StartsWith("off: no GPU was used"));
  Use();
  ReadOn();
  EXPECT_EQ(devices_->Source(false), "on");
  machine_->open = absl::NotFoundError("libnvidia-ml.so.1 was not found");
  Use(3600 * kSecond);
  devices_->ShowAtEnd(recorder_.get(), 60 * kSecond);
  EXPECT_EQ(devices_->Source(false), "off: libnvidia-ml.so.1 was not found");
  EXPECT_EQ(devices_->Source(true),
            "off: libnvidia-ml.so.1 was not found (device memory is known from the program's own "
            "queries)");
}

// The same through a collector, for a process that reports its device like the preloaded library.
class CollectedDevicesTest : public CollectorTest {
 protected:
  CollectedDevicesTest() {
    machine_->devices[kUuid] = {7, kUuid, 3, "9.0"};
    machine_->memory[7] = Used(4 * kGiB);
    device_source_ = [this] { return std::make_unique<FakeDeviceSource>(machine_); };
  }

  static void ReportDevice(FakeTarget& target) {
    session::Record record;
    record.kind = session::Kind::kDevice;
    record.action = session::Action::kCreate;
    record.device = 1;
    record.value = target.Text("H100");
    record.stream = target.Text("0000:65:00.0") | uint64_t{target.Text(kUuid)} << 32;
    record.size = 80 * kGiB;
    record.priority = 90;
    record.time_ns = target.now_ns;
    target.Write(record);
  }

  std::shared_ptr<FakeMachine> machine_ = std::make_shared<FakeMachine>();
};

TEST_F(CollectedDevicesTest, RecordingNamesTheDeviceAndItsMemory) {
  FakeTarget target;
  Start(target);
  ReportDevice(target);
  target.Alloc(0x1000, 256);
  const Recording recording = ExitAndRead(target);
  ASSERT_THAT(recording.facts.devices(), SizeIs(2));  // one known from events only
  EXPECT_FALSE(recording.facts.devices(0).has_name());
  EXPECT_EQ(recording.facts.devices(1).name(), "H100");
  EXPECT_EQ(recording.facts.devices(1).compute_capability(), "9.0");
  EXPECT_EQ(recording.facts.devices(1).physical_index(), 3u);
  ASSERT_NE(recording.FindSnapshot("exit"), nullptr);
  ASSERT_THAT(recording.FindSnapshot("exit")->samples(), SizeIs(1));
  EXPECT_EQ(recording.FindSnapshot("exit")->samples(0).device(), 1u);
  EXPECT_EQ(recording.Count(gmt::DEVICE_NAME), 0u);
}

TEST_F(CollectedDevicesTest, DeviceIsInTheFileBeforeTheEnd) {
  FakeTarget target;
  Start(target);
  ReportDevice(target);
  ReadAll();
  EXPECT_EQ(ReadBack(bytes_).facts.devices(0).name(), "H100");
  ExitAndRead(target);
}

TEST_F(CollectedDevicesTest, SourceIsNotOpenedIfNoDeviceIsUsed) {
  FakeTarget target;
  Start(target);
  target.Alloc(0x7000, 4096, {session::Space::kPinned, session::Memory::kPinned});
  const Recording recording = ExitAndRead(target);
  EXPECT_EQ(machine_->opened, 0);
  EXPECT_THAT(recording.facts.devices(), IsEmpty());
}

TEST_F(CollectedDevicesTest, HangingNvmlDelaysNothing) {
  machine_->Hang(true);
  FakeTarget target;
  Start(target);
  ReportDevice(target);
  target.Alloc(0x1000, 256);
  const Recording recording = ExitAndRead(target);
  EXPECT_TRUE(recording.complete);
  EXPECT_EQ(recording.Count(gmt::ALLOC), 1u);
  EXPECT_THAT(recording.FindSnapshot("exit")->samples(), IsEmpty());
  machine_->Hang(false);
}

}  // namespace
}  // namespace gmt::collector
