// The kernels of matmul on one instruction set: products of exact values (matmul_rows,
// matmul_packed, matmul_columns) and of q8 with block formats (matmul_q8). Dotprod, VNNI and AMX
// have the last.

#include "cpu/tier.hpp"

#if TESSERA_TIER == TESSERA_TIER_DOTPROD
#include "ops/matmul/matmul_q8_portable.inl"
#elif TESSERA_TIER < TESSERA_TIER_AVX2
#include "ops/matmul/matmul_columns.inl"
#include "ops/matmul/matmul_exact.inl"
#include "ops/matmul/matmul_packed.inl"
#include "ops/matmul/matmul_q8_portable.inl"
#elif TESSERA_TIER >= TESSERA_TIER_AVX512VNNI
#include "ops/matmul/matmul_q8.inl"
#else
#include "ops/matmul/matmul_columns.inl"
#include "ops/matmul/matmul_exact.inl"
#include "ops/matmul/matmul_packed.inl"
#include "ops/matmul/matmul_q8.inl"
#endif
