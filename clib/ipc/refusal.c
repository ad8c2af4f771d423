/* Why something failed: an errno and an explanation in words. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "stream.h"

static __thread char detail[1100];
static __thread bool by_driver; /* it is of an answer of the driver's */

const char *svpi_detail(void) { return detail; }

const char *svpi_refusal(void) { return by_driver ? detail : NULL; }

int svpi_fail(int error, const char *why)
{
	snprintf(detail, sizeof(detail), "%s", why);
	by_driver = false;
	return error;
}

int svpi_refused(const uint8_t *body, size_t len)
{
	uint32_t code;

	memcpy(&code, body, 4);
	snprintf(detail, sizeof(detail), "%.*s", (int)(len - 8), (const char *)body + 8);
	by_driver = true;
	return svpi_errno(code);
}

int svpi_errno(uint32_t code)
{
	switch (code) {
	case SVPI_CODE_INVALID: return EINVAL;
	case SVPI_CODE_NOT_FOUND: return ENOENT;
	case SVPI_CODE_BUSY: return EBUSY;
	case SVPI_CODE_EXHAUSTED: return ENOMEM;
	case SVPI_CODE_STATE: return EINVAL;
	case SVPI_CODE_UNSUPPORTED: return EOPNOTSUPP;
	case SVPI_CODE_IN_USE: return EADDRINUSE;
	case SVPI_CODE_ADDR_NOT_AVAILABLE: return EADDRNOTAVAIL;
	case SVPI_CODE_NETWORK_UNREACHABLE: return ENETUNREACH;
	case SVPI_CODE_HOST_UNREACHABLE: return EHOSTUNREACH;
	case SVPI_CODE_REFUSED: return ECONNREFUSED;
	case SVPI_CODE_TIMED_OUT: return ETIMEDOUT;
	case SVPI_CODE_ABORTED: return ECONNABORTED;
	case SVPI_CODE_CANCELED: return ECANCELED;
	case SVPI_CODE_REMOVED: return ENODEV;
	case SVPI_CODE_ACCESS: return EACCES;
	}
	return EIO;
}
