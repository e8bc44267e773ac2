#include "ops/rope/rotate_cpu.inl"

namespace tessera::TESSERA_ISA {

void rope_tokens(const RopeArgs& args, Team& team) noexcept {
  const int64_t n_tokens = live_rows(args.live, args.q.n_tokens);
  for (int64_t t; (t = team.next_chunk(n_tokens)) < n_tokens;) {
    for (int64_t begin = 0; begin < args.rotation.n_pairs; begin += kStripPairs) {
      Strip strip;
      read_strip(args.rotation, t, begin, &strip);
      for (int64_t h = 0; h < args.q.n_heads; ++h) {
        rotate_in_place(args.rotation, strip, head_of(args.q, t, h));
      }
      for (int64_t h = 0; h < args.k.n_heads; ++h) {
        rotate_in_place(args.rotation, strip, head_of(args.k, t, h));
      }
    }
  }
}

}  // namespace tessera::TESSERA_ISA
