#define TASO_PAIRS_NAME pairs_for_avx512
#include "runtime/cpu/pairs_body.h"
