#include "device/kernel_table.hpp"

#include <gtest/gtest.h>

#include "cpu/device.hpp"
#include "device/queue.hpp"
#include "device/registry.hpp"

namespace tessera {
namespace {

struct Twice {
  static constexpr std::string_view kName = "twice";
  struct Args {
    int n = 0;
  };
};

KernelTable table_of(std::initializer_list<Row<Twice>> rows) {
  KernelTable table;
  for (const Row<Twice>& row : rows) table.add<Twice>(row);
  return table;
}

Row<Twice> row(std::string name, int at_most, bool reference = false) {
  return {.name = std::move(name),
          .supports = [at_most](const Twice::Args& args, const Caps&) { return args.n <= at_most; },
          .run = nullptr,
          .traits = {.reference = reference}};
}

TEST(KernelTable, TheFirstRowThatSupportsTheArgumentsRuns) {
  KernelTable table = table_of({row("small", 4), row("large", 100), row("reference", 1000, true)});
  EXPECT_EQ(table.pick<Twice>({3}, {}).name, "small");
  EXPECT_EQ(table.pick<Twice>({5}, {}).name, "large");
  EXPECT_THROW(table.pick<Twice>({101}, {}), Error);  // never the reference unasked
  table.allow_reference(true);
  EXPECT_EQ(table.pick<Twice>({101}, {}).name, "reference");
}

TEST(KernelTable, AForcedRowRunsOrTheErrorNamesIt) {
  KernelTable table = table_of({row("small", 4), row("large", 100)});
  table.force("twice", "large");
  EXPECT_EQ(table.pick<Twice>({3}, {}).name, "large");
  table.force("twice", "small");
  try {
    table.pick<Twice>({5}, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'small'"), std::string::npos) << error.what();
  }
  EXPECT_THROW(table.force("twice", "medium"), Error);
  EXPECT_THROW(table.force("thrice", "small"), Error);
}

TEST(DeviceRegistry, ParsesKindAndNumber) {
  DeviceRegistry registry;
  registry.add(cpu::device_kind(cpu::CpuDevice::Memory::kShared,
                                [](KernelTable&, const std::vector<cpu::Tier>&) {}));
  EXPECT_EQ(registry.find("cpu").index, 0);
  EXPECT_EQ(registry.find("cpu:0").index, 0);
  for (const char* spec : {"cpu:1", "cpu:", "cpu:x", "cpu:-1", "gpu", ""}) {
    EXPECT_THROW(registry.find(spec), Error) << spec;
  }
}

}  // namespace
}  // namespace tessera
