#include "ops/rope/rope_kv_write_cpu.hpp"
#include "ops/rope/rotate_cpu.inl"

namespace tessera::TESSERA_ISA {
namespace {

/// Stores values begin .. begin + n of a head into its slot, in the type of the pages.
void write_values(bool f16, unsigned char* slot, int64_t begin, const float* values, int64_t n) {
  if (!f16) {
    memcpy(slot + begin * 4, values, static_cast<size_t>(n) * 4);
    return;
  }
  auto* target = reinterpret_cast<uint16_t*>(slot) + begin;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store_f16(target + i, load(values + i));
  for (; i < n; ++i) target[i] = f32_to_f16_bits(values[i]);
}

void write_rotated(const RopeKvWriteArgs& args, const Strip& strip, const float* k,
                   unsigned char* slot) {
  float rotated[2 * kStripPairs];
  if (args.rotation.interleaved) {
    rotate_interleaved(strip, k + 2 * strip.begin, rotated);
    write_values(args.k_pages.f16, slot, 2 * strip.begin, rotated, 2 * strip.count);
  } else {
    const float *a = k + strip.begin, *b = a + args.rotation.n_pairs;
    rotate_halves(strip, a, b, rotated, rotated + kStripPairs);
    write_values(args.k_pages.f16, slot, strip.begin, rotated, strip.count);
    write_values(args.k_pages.f16, slot, strip.begin + args.rotation.n_pairs, rotated + kStripPairs,
                 strip.count);
  }
}

void write_token(const RopeKvWriteArgs& args, int64_t t, int64_t i_page, int64_t i_slot) {
  for (int64_t begin = 0; begin < args.rotation.n_pairs; begin += kStripPairs) {
    Strip strip;
    read_strip(args.rotation, t, begin, &strip);
    for (int64_t h = 0; h < args.q.n_heads; ++h) {
      rotate_in_place(args.rotation, strip, head_of(args.q, t, h));
    }
    for (int64_t h = 0; h < args.k.n_heads; ++h) {
      write_rotated(args, strip, head_of(args.k, t, h), slot_of(args.k_pages, i_page, h, i_slot));
    }
  }
  const int64_t head_dim = args.k.head_dim, rotary_dim = 2 * args.rotation.n_pairs;
  for (int64_t h = 0; h < args.k.n_heads; ++h) {
    write_values(args.k_pages.f16, slot_of(args.k_pages, i_page, h, i_slot), rotary_dim,
                 head_of(args.k, t, h) + rotary_dim, head_dim - rotary_dim);
    write_values(args.v_pages.f16, slot_of(args.v_pages, i_page, h, i_slot), 0,
                 head_of(args.v, t, h), head_dim);
  }
}

}  // namespace

void rope_kv_write_tokens(const RopeKvWriteArgs& args, Team& team) noexcept {
  const int64_t n_tokens = live_rows(args.live, args.q.n_tokens);
  for (int64_t t; (t = team.next_chunk(n_tokens)) < n_tokens;) {
    const int32_t sequence = args.batch.sequences[t];
    if (sequence < 0) continue;
    const int64_t position = args.batch.positions[t], page_tokens = args.k_pages.page_tokens;
    const auto* pages = row_of<const uint32_t>(args.batch.block_tables, sequence);
    write_token(args, t, pages[position / page_tokens], position % page_tokens);
  }
}

}  // namespace tessera::TESSERA_ISA
