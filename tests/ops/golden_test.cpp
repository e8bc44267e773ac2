// References and formats against what PyTorch, gguf-py and numpy make of the same inputs
// (tests/data/ops, written by tools/export_op_goldens.py).

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cpu/device.hpp"
#include "ops/all_ops.hpp"
#include "ops/cases.hpp"
#include "ops/rope/rotation.hpp"
#include "tensor/convert.hpp"

namespace tessera {
namespace {

using Json = nlohmann::json;

Json load(const std::string& name) {
  std::ifstream file(std::string(TESSERA_TEST_DATA) + "/data/ops/" + name);
  return Json::parse(file);
}

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

Shape shape_of(const Json& json) {
  const auto sizes = json.get<std::vector<int64_t>>();
  switch (sizes.size()) {
    case 1:
      return {sizes[0]};
    case 2:
      return {sizes[0], sizes[1]};
    case 3:
      return {sizes[0], sizes[1], sizes[2]};
    default:
      return {sizes.at(0), sizes.at(1), sizes.at(2), sizes.at(3)};
  }
}

/// One golden on a plain CPU device.
class Golden {
 public:
  explicit Golden(const Json& json) : json_(json) {}

  std::string label() const {
    return json_["op"].get<std::string>() + " " + json_["name"].get<std::string>();
  }
  template <typename T>
  T scalar(const char* name) const {
    return json_["scalars"].at(name).get<T>();
  }

  /// Calls the reference with the tensors of the golden and compares what it writes.
  template <typename Op>
  void check(typename Op::Args args) {
    Op::visit(args, [&](std::string_view name, Tensor& tensor, Access) {
      tensor = make(std::string(name));
    });
    Op::reference(args);
    int n_compared = 0;
    Op::visit(args, [&](std::string_view name, const Tensor& tensor, Access access) {
      if (access == Access::kRead || !tensor.defined()) return;
      compare(std::string(name), tensor);
      ++n_compared;
    });
    EXPECT_EQ(n_compared, static_cast<int>(json_["outputs"].size())) << label();
  }

 private:
  Tensor make(const std::string& name) {
    const bool input = json_["inputs"].contains(name);
    if (!input && !json_["outputs"].contains(name)) return {};
    const Json& json = input ? json_["inputs"][name] : json_["outputs"][name];
    const auto dtype = dtype_from_name(json["dtype"].get<std::string>());
    Tensor tensor = Tensor::dense(dtype.value(), shape_of(json["shape"]));
    buffers_.push_back(device_.allocate(tensor.span_bytes()));
    tensor.buffer = buffers_.back().get();
    if (input) write_tensor(tensor, bytes_of(json, tensor));
    return tensor;
  }

  static std::vector<std::byte> bytes_of(const Json& json, const Tensor& tensor) {
    if (json.contains("hex")) return from_hex(json["hex"]);
    const auto values = json["values"].get<std::vector<double>>();
    if (tensor.dtype != DType::kF16 && tensor.dtype != DType::kBF16) {
      return make_bytes(tensor, fill::values(values), 0);
    }
    std::vector<std::byte> bytes;  // 16-bit floats are stored as their bits
    for (const double value : values) {
      const auto bits = static_cast<uint16_t>(value);
      bytes.push_back(static_cast<std::byte>(bits & 0xff));
      bytes.push_back(static_cast<std::byte>(bits >> 8));
    }
    return bytes;
  }

  void compare(const std::string& name, const Tensor& tensor) {
    const Json& json = json_["outputs"][name];
    if (json.contains("hex")) {
      EXPECT_EQ(read_tensor(tensor), from_hex(json["hex"])) << label() << " " << name;
      return;
    }
    const std::vector<double> got = decode(tensor, read_tensor(tensor));
    const auto expected = json["values"].get<std::vector<double>>();
    ASSERT_EQ(got.size(), expected.size()) << label() << " " << name;
    for (size_t i = 0; i < got.size(); ++i) {
      // Scalars of the arguments (eps, scale, soft_cap) are f32: a relative error of 6e-8 at most,
      // and exact where a golden has none. Everything else is f64 on both sides.
      const double relative = json_["scalars"].contains("scale") ? 1e-6 : 1e-12;
      EXPECT_NEAR(got[i], expected[i], relative * (1 + std::abs(expected[i])))
          << label() << " " << name << "[" << i << "]";
    }
  }

  const Json& json_;
  cpu::CpuDevice device_{DeviceOptions{.n_threads = 1, .isa = ""}, cpu::CpuDevice::Memory::kShared};
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

template <typename Args>
void set_order(const Golden& golden, Args& args) {
  args.order =
      golden.scalar<std::string>("order") == "in_out" ? WeightOrder::kInOut : WeightOrder::kOutIn;
}
template <typename Args>
void set_eps(const Golden& golden, Args& args) {
  args.eps = golden.scalar<float>("eps");
}

/// Compares one golden with the reference of Op, whose scalars `set` fills in.
template <typename Op>
void check(Golden& golden) {
  golden.check<Op>({});
}
template <typename Op, void (*set)(const Golden&, typename Op::Args&)>
void check_with(Golden& golden) {
  typename Op::Args args;
  set(golden, args);
  golden.check<Op>(args);
}

void set_gelu(const Golden& golden, Gelu::Args& args) {
  args.kind = golden.scalar<std::string>("kind") == "tanh" ? GeluKind::kTanh : GeluKind::kErf;
}
void set_int4(const Golden& golden, MatmulInt4::Args& args) {
  args.group_size = golden.scalar<int64_t>("group_size");
}
void set_rope(const Golden& golden, Rope::Args& args) {
  args.pairing = golden.scalar<std::string>("pairing") == "interleaved" ? RopePairing::kInterleaved
                                                                        : RopePairing::kHalfSplit;
}
void set_paged_attention(const Golden& golden, PagedAttention::Args& args) {
  args.scale = golden.scalar<float>("scale");
  args.soft_cap = golden.scalar<float>("soft_cap");
  args.window = golden.scalar<int64_t>("window");
}
void set_attention(const Golden& golden, Attention::Args& args) {
  args.scale = golden.scalar<float>("scale");
  args.soft_cap = golden.scalar<float>("soft_cap");
  args.window = golden.scalar<int64_t>("window");
  args.position_offset = golden.scalar<int64_t>("position_offset");
  args.causal = golden.scalar<bool>("causal");
}

// rope_kv_write (rope, and copies into pages) and convert (FormatGoldens) have none of their own.
const std::map<std::string, void (*)(Golden&)> kChecks = {
    {"silu", check<Silu>},
    {"gelu", check_with<Gelu, set_gelu>},
    {"add", check<Add>},
    {"mul", check<Mul>},
    {"swiglu", check<Swiglu>},
    {"softmax", check<Softmax>},
    {"argmax", check<Argmax>},
    {"top_k", check<TopK>},
    {"gather_rows", check<GatherRows>},
    {"quantize_rows", check<QuantizeRows>},
    {"rmsnorm", check_with<Rmsnorm, set_eps<Rmsnorm::Args>>},
    {"layernorm", check_with<Layernorm, set_eps<Layernorm::Args>>},
    {"matmul", check_with<Matmul, set_order<Matmul::Args>>},
    {"matmul_int4", check_with<MatmulInt4, set_int4>},
    {"linear_residual", check<LinearResidual>},
    {"norm_linear_group", check_with<NormLinearGroup, set_eps<NormLinearGroup::Args>>},
    {"norm_gate_up_swiglu", check_with<NormGateUpSwiglu, set_eps<NormGateUpSwiglu::Args>>},
    {"matmul_residual_swiglu_a",
     check_with<MatmulResidualSwigluA, set_order<MatmulResidualSwigluA::Args>>},
    {"rope", check_with<Rope, set_rope>},
    {"attention", check_with<Attention, set_attention>},
    {"paged_attention", check_with<PagedAttention, set_paged_attention>},
};

TEST(OpGoldens, ReferencesAgreeWithPyTorch) {
  const Json goldens = load("ops.json");
  std::set<std::string> seen;
  for (const Json& json : goldens) {
    Golden golden(json);
    const auto found = kChecks.find(json["op"]);
    ASSERT_NE(found, kChecks.end()) << "unknown op " << json["op"];
    found->second(golden);
    seen.insert(json["op"]);
  }
  EXPECT_EQ(seen.size(), kChecks.size());
}

TEST(OpGoldens, RotaryAnglesAgreeWithThePublishedFormulas) {
  for (const Json& json : load("rotation.json")) {
    const Json& given = json["spec"];
    const std::string kind = given["kind"];
    RopeSpec spec;
    spec.rotary_dim = given["rotary"];
    spec.base = given["base"];
    spec.scaling = {.kind = kind == "llama3"   ? RopeScalingKind::kLlama3
                            : kind == "linear" ? RopeScalingKind::kLinear
                                               : RopeScalingKind::kNone,
                    .factor = given["factor"],
                    .low_freq_factor = given["low"],
                    .high_freq_factor = given["high"],
                    .original_context = given["context"]};
    const std::vector<double> frequencies = rope_frequencies(spec);
    const auto expected = json["frequencies"].get<std::vector<double>>();
    ASSERT_EQ(frequencies.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(frequencies[i], expected[i], 1e-14 * expected[i]) << given << " pair " << i;
    }
    const auto positions = json["positions"].get<std::vector<uint32_t>>();
    const auto angles = json["rotation"].get<std::vector<double>>();
    std::vector<float> rotation(angles.size());
    rope_rotation(frequencies, positions, rotation);
    for (size_t i = 0; i < angles.size(); ++i) {
      // Half a step of f32, and the angle's own error in f64 at position 8191.
      EXPECT_NEAR(static_cast<double>(rotation[i]), angles[i], 3.1e-8) << given << " value " << i;
    }
  }
}

void expect_decoded(DType dtype, const std::vector<std::byte>& bytes,
                    const std::vector<double>& expected, const std::string& what) {
  const auto n =
      static_cast<int64_t>(bytes.size()) / info(dtype).block_bytes * info(dtype).block_size;
  std::vector<float> values(static_cast<size_t>(n));
  dequantize(dtype, bytes.data(), values.data(), n);
  const size_t n_compared = std::min(values.size(), expected.size());
  ASSERT_GT(n_compared, 0u) << what;
  for (size_t i = 0; i < n_compared; ++i) {
    EXPECT_EQ(values[i], static_cast<float>(expected[i])) << what << " value " << i;
  }
}

TEST(FormatGoldens, RandomBlocksDecodeAsInGgufPy) {
  const Json goldens = load("formats.json");
  EXPECT_EQ(goldens["blocks"].size(), 10u);
  for (const Json& json : goldens["blocks"]) {
    const std::string type = json["type"];
    expect_decoded(dtype_from_name(type).value(), from_hex(json["hex"]), json["values"], type);
  }
}

TEST(FormatGoldens, BlocksOfModelFilesDecodeToTheirValues) {
  const Json goldens = load("model_blocks.json");
  EXPECT_GT(goldens.size(), 3u);
  for (const Json& json : goldens) {
    expect_decoded(dtype_from_name(json["type"].get<std::string>()).value(), from_hex(json["hex"]),
                   json["values"], json["tensor"]);
  }
}

}  // namespace
}  // namespace tessera
