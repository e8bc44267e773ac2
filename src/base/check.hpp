#pragma once

/// A programmer's mistake, never reachable from input: stops a debug build, costs nothing in a
/// release build.
#ifdef TESSERA_DEBUG_CHECKS
#define TESSERA_DCHECK(condition) ((condition) ? (void)0 : __builtin_trap())
#else
#define TESSERA_DCHECK(condition) ((void)0)
#endif
