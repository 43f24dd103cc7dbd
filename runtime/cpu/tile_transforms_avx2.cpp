#define TASO_TRANSFORMS_NAME tile_transforms_for_avx2
#include "runtime/cpu/tile_transforms_body.h"
