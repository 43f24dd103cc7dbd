#define TASO_LOOPS_NAME loops_for_generic
#define TASO_LOOPS_SET "generic"
#include "runtime/cpu/loops_body.h"
