#pragma once

#include "ops/cpu_views.hpp"

namespace tessera {

/// y = f(a) or f(a, b), value by value; all f32 [M, N]. Unary kernels leave b alone.
struct ElementwiseArgs {
  MatrixView y, a, b;
  const uint32_t* live;
};

TESSERA_DECLARE_TIERS(void add_rows(const ElementwiseArgs&, Team&) noexcept;
                      void mul_rows(const ElementwiseArgs&, Team&) noexcept;
                      void silu_rows(const ElementwiseArgs&, Team&) noexcept;
                      void gelu_tanh_rows(const ElementwiseArgs&, Team&) noexcept;
                      void gelu_erf_rows(const ElementwiseArgs&, Team&) noexcept;
                      void swiglu_rows(const ElementwiseArgs&, Team&) noexcept)

}  // namespace tessera
