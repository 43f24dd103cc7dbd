#pragma once

// Vectors of the instruction set that a file is compiled for. Internal linkage, as all that is compiled once per
// instruction set (cpu/loops_body.h).

#include <stdint.h>  // NOLINT(modernize-deprecated-headers): <cstdint> may declare more

namespace taso::cpu {
namespace {

using Count = int64_t;

#if defined(__AVX512F__)
#define TASO_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define TASO_VECTOR_BYTES 32
#else
#define TASO_VECTOR_BYTES 16
#endif
/// A vector of this instruction set, one in memory, and its bits.
using Pack = float __attribute__((vector_size(TASO_VECTOR_BYTES)));
using PackAnywhere = float __attribute__((vector_size(TASO_VECTOR_BYTES), aligned(4), may_alias));
using PackBits = int32_t __attribute__((vector_size(TASO_VECTOR_BYTES)));
constexpr Count lanes = sizeof(Pack) / sizeof(float);

}  // namespace
}  // namespace taso::cpu
