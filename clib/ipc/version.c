/* The version of the protocol that these libraries speak. softvpi verbs doctor finds it in the file. */
#include <stdint.h>

#include "attach.h"

#pragma GCC visibility push(default)
extern const uint16_t svpi_protocol[2];
#pragma GCC visibility pop

const uint16_t svpi_protocol[2] = { SVPI_MAJOR, SVPI_MINOR };
