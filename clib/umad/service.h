/* The protocol of a fabric's service for management datagrams, and the functions that use it. internal/umad/socket
 * declares the same layouts in Go. */
#ifndef SOFTVPI_UMAD_SERVICE_H
#define SOFTVPI_UMAD_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "umad.h"

enum svpi_umad_kind {
	SVPI_UMAD_LIST = 1,
	SVPI_UMAD_ADAPTER,
	SVPI_UMAD_PORT,
	SVPI_UMAD_OPEN,
	SVPI_UMAD_MANAGER_AT,
	SVPI_UMAD_REGISTER,
	SVPI_UMAD_UNREGISTER,
	SVPI_UMAD_SEND,
};

enum {
	SVPI_UMAD_VERSION = 1,
	SVPI_UMAD_INLINE = 32 << 10, /* a longer MAD is passed in a sealed memory file */
	SVPI_UMAD_LONGEST = 64 << 20,
	SVPI_UMAD_MAD = 256,
};

struct svpi_umad_request {
	uint32_t kind;
	uint32_t version;
	char node[72];
	char name[UMAD_CA_NAME_LEN];
	int32_t port; /* -1: the first active port, or the first port if none is active */
};

struct svpi_umad_answer {
	uint32_t error;
	uint32_t value;
};

struct svpi_umad_adapter {
	struct svpi_umad_answer a;
	uint32_t node_type;
	uint32_t first;
	uint32_t last;
	char firmware[20];
	char type[40];
	char hardware[20];
	uint32_t reserved;
	uint8_t node_guid[8];
	uint8_t system_guid[8];
};

struct svpi_umad_port {
	struct svpi_umad_answer a;
	uint32_t number, lid, lmc, sm_lid, sm_sl, state, physical, rate;
	uint8_t capabilities[4];
	uint8_t prefix[8];
	uint8_t guid[8];
	char link_layer[UMAD_CA_NAME_LEN];
	uint32_t pkeys_size;
	uint8_t port_info[64];
	uint8_t node_info[64];
	uint16_t pkeys[256];
};

struct svpi_umad_registration {
	uint32_t kind;
	uint32_t version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t rmpp_version;
	uint8_t qpn;
	uint32_t flags;
	uint32_t oui;
	uint32_t reserved;
	uint64_t methods[2];
	uint64_t reserved2;
};

struct svpi_umad_send {
	uint32_t kind;
	uint32_t reserved;
	struct ib_user_mad mad;
};

_Static_assert(sizeof(struct ib_user_mad) == 64, "header of a MAD");
_Static_assert(sizeof(struct svpi_umad_request) == 104, "request");
_Static_assert(sizeof(struct svpi_umad_adapter) == 8 + 112, "adapter");
_Static_assert(offsetof(struct svpi_umad_port, pkeys) == 8 + 204, "port");
_Static_assert(sizeof(struct svpi_umad_registration) == 48, "registration");

/* svpi_umad_ask asks one question over a connection of its own. Returns the length of the answer, or -errno. */
int svpi_umad_ask(enum svpi_umad_kind kind, const char *name, int port, void *answer, size_t size);

/* svpi_umad_tree answers a question about adapters and ports from /sys/class/infiniband, as svpi_umad_ask does. */
int svpi_umad_tree(enum svpi_umad_kind kind, const char *name, int port, void *answer, size_t size);

/* svpi_umad_open opens a port. Returns a descriptor, or -errno. */
int svpi_umad_open(const char *name, int port);

/* svpi_umad_say sends a message about agents on an open port and waits for the answer, which does not come the way of
 * MADs. Returns the number in the answer, or -errno. */
int svpi_umad_say(int fd, const void *message, size_t size);

/* svpi_umad_level is the level set by umad_debug. svpi_umad_warn writes what the original library writes to standard
 * error. */
extern int svpi_umad_level;
void svpi_umad_warn(const char *function, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define WARN(...) svpi_umad_warn(__func__, __VA_ARGS__)
#define TRACE(...) do { if (svpi_umad_level > 1) WARN(__VA_ARGS__); } while (0)
#define DEBUG(...) do { if (svpi_umad_level > 0) WARN(__VA_ARGS__); } while (0)

#endif
