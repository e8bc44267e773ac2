#include "formats/ggml_types.hpp"

#include <array>

namespace tessera {
namespace {

// Gaps in the numbers are types that were removed: 4 and 5, 31 to 33, 36 to 38.
constexpr std::array kTypes = {
    GgmlType{0, "F32", DType::kF32, 1, 4},          GgmlType{1, "F16", DType::kF16, 1, 2},
    GgmlType{2, "Q4_0", DType::kQ4_0, 32, 18},      GgmlType{3, "Q4_1", DType::kQ4_1, 32, 20},
    GgmlType{6, "Q5_0", DType::kQ5_0, 32, 22},      GgmlType{7, "Q5_1", DType::kQ5_1, 32, 24},
    GgmlType{8, "Q8_0", DType::kQ8_0, 32, 34},      GgmlType{9, "Q8_1", DType::kNone, 32, 40},
    GgmlType{10, "Q2_K", DType::kQ2_K, 256, 84},    GgmlType{11, "Q3_K", DType::kQ3_K, 256, 110},
    GgmlType{12, "Q4_K", DType::kQ4_K, 256, 144},   GgmlType{13, "Q5_K", DType::kQ5_K, 256, 176},
    GgmlType{14, "Q6_K", DType::kQ6_K, 256, 210},   GgmlType{15, "Q8_K", DType::kNone, 256, 292},
    GgmlType{16, "IQ2_XXS", DType::kNone, 256, 66}, GgmlType{17, "IQ2_XS", DType::kNone, 256, 74},
    GgmlType{18, "IQ3_XXS", DType::kNone, 256, 98}, GgmlType{19, "IQ1_S", DType::kNone, 256, 50},
    GgmlType{20, "IQ4_NL", DType::kNone, 32, 18},   GgmlType{21, "IQ3_S", DType::kNone, 256, 110},
    GgmlType{22, "IQ2_S", DType::kNone, 256, 82},   GgmlType{23, "IQ4_XS", DType::kNone, 256, 136},
    GgmlType{24, "I8", DType::kNone, 1, 1},         GgmlType{25, "I16", DType::kNone, 1, 2},
    GgmlType{26, "I32", DType::kNone, 1, 4},        GgmlType{27, "I64", DType::kNone, 1, 8},
    GgmlType{28, "F64", DType::kNone, 1, 8},        GgmlType{29, "IQ1_M", DType::kNone, 256, 56},
    GgmlType{30, "BF16", DType::kBF16, 1, 2},       GgmlType{34, "TQ1_0", DType::kNone, 256, 54},
    GgmlType{35, "TQ2_0", DType::kNone, 256, 66},   GgmlType{39, "MXFP4", DType::kNone, 32, 17},
    GgmlType{40, "NVFP4", DType::kNone, 64, 36},    GgmlType{41, "Q1_0", DType::kNone, 128, 18},
};

}  // namespace

const GgmlType* find_ggml_type(uint32_t id) {
  for (const GgmlType& type : kTypes) {
    if (type.id == id) return &type;
  }
  return nullptr;
}

const GgmlType* ggml_type_of(DType dtype) {
  if (dtype == DType::kNone) return nullptr;
  for (const GgmlType& type : kTypes) {
    if (type.dtype == dtype) return &type;
  }
  return nullptr;
}

std::string supported_ggml_types() {
  std::string text;
  for (const GgmlType& type : kTypes) {
    if (type.dtype == DType::kNone) continue;
    if (!text.empty()) text += ", ";
    text += type.name;
  }
  return text;
}

}  // namespace tessera
