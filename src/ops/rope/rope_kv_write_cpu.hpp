#pragma once

#include "ops/rope/rope_cpu.hpp"

namespace tessera {

struct RopeKvWriteArgs {
  HeadsView q, k, v;
  PagesView k_pages, v_pages;
  RotationView rotation;
  BatchView batch;
  const uint32_t* live;
};

TESSERA_DECLARE_TIERS(void rope_kv_write_tokens(const RopeKvWriteArgs&, Team&) noexcept)

}  // namespace tessera
