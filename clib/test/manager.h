/* What the tests of librdmacm share. */
#ifndef MANAGER_H
#define MANAGER_H

#include <netinet/in.h>
#include <rdma/rdma_cma.h>

/* address returns an adapter's address, with a port in network byte order. */
struct sockaddr_in address(int device, uint16_t port);

void test_xrc_endpoints(void);
void test_xrc_requests(void);

#endif
