#define TASO_TRANSFORMS_NAME tile_transforms_for_generic
#include "runtime/cpu/tile_transforms_body.h"
